/** Formats a duration as kubectl does (apimachinery `duration.HumanDuration`): `5s`, `3m20s`, `4h`, `12d`, `2y30d`. */
export function age(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return pair(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return pair(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (hours < 192) return pair(days, "d", hours % 24, "h");
  if (days < 730) return `${days}d`;
  const years = Math.floor(days / 365);
  return days < 2920 ? pair(years, "y", days % 365, "d") : `${years}y`;
}

/** The age of a timestamp, or `<unknown>` without one. */
export function since(timestamp: unknown, now: number): string {
  const then = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(then) ? "<unknown>" : age(now - then);
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}
