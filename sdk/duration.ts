/** A length of time: milliseconds as a number, or text such as `500ms`, `30s`, `5m`, `2h`, `1m30s`, `1.5s`. */
export type Duration = number | string;

/** Milliseconds per unit. */
const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * Returns the milliseconds of a duration, or `undefined` if the text is malformed. A text consists of numbers with units, as in
 * Go and in Kubernetes: `1h30m`. A number without a unit is refused in text.
 */
export function parseDuration(duration: Duration): number | undefined {
  if (typeof duration === "number") return Number.isFinite(duration) && duration >= 0 ? duration : undefined;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(duration)) return undefined;
  let total = 0;
  for (const [, amount, unit] of duration.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    total += Number(amount) * (units[unit ?? ""] ?? Number.NaN);
  }
  return Number.isFinite(total) ? total : undefined;
}
