/**
 * Orders two resourceVersions of one resource: negative, zero or positive, as for a sort.
 * Undefined where the two cannot be ordered: some aggregated APIs give opaque strings, for which only equality holds.
 * Kubernetes promises positive decimal integers of up to 128 bit since 1.35 (apimachinery `resourceversion.go`), so
 * the longer one is the newer, and equal lengths compare as text; no number type is wide enough.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isOrdered(a) || !isOrdered(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** Whether `version` is of the kind that can be ordered: digits alone, without a leading zero. */
export function isOrdered(version: string): boolean {
  if (version.length === 0) return false;
  const first = version.charCodeAt(0);
  if (first < 0x31 || first > 0x39) return false;
  for (let index = 1; index < version.length; index++) {
    const code = version.charCodeAt(index);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}

/** The newer of the two; `b` where they cannot be ordered, because it came later. */
export function newerResourceVersion(a: string | undefined, b: string): string {
  if (a === undefined) return b;
  const order = compareResourceVersions(a, b);
  return order !== undefined && order > 0 ? a : b;
}
