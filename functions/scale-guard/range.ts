export interface Range {
  readonly min: number;
  readonly max: number;
}

/** Parses `2-5`, or `3` for exactly three; undefined if it is neither, or if the first exceeds the second. */
export function parseRange(text: string): Range | undefined {
  const match = /^\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*$/.exec(text);
  if (!match) return undefined;
  const min = Number(match[1]);
  const max = Number(match[2] ?? match[1]);
  return min <= max ? { min, max } : undefined;
}
