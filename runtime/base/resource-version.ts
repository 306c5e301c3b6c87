declare const brand: unique symbol;

/**
 * A position in the history of one resource, as the API server gave it: of an object, a bookmark or a list.
 *
 * Kubernetes promises positive decimal integers of up to 128 bit since 1.35 (apimachinery `resourceversion.go`). So the
 * longer one is the newer, and equal lengths compare as text; no number type is wide enough. Some aggregated APIs give
 * opaque text instead. One rule holds for those. Neither of two is newer than the other, and one is up to the other
 * only where they are the same.
 */
export type ResourceVersion = string & { readonly [brand]: "ResourceVersion" };

/** Names a text that came from an API server, or from where one was kept, as what it is. "" is none. */
export const resourceVersion = (text: string): ResourceVersion => text as ResourceVersion;

/** Stands where there is none. */
export const noResourceVersion: ResourceVersion = resourceVersion("");

/** The same of a text that may be absent: undefined for undefined, null and "". */
export const resourceVersionIn = (text: string | null | undefined): ResourceVersion | undefined =>
  text ? resourceVersion(text) : undefined;

/** Whether `a` is certainly newer than `b`: false where the two have no order. */
export const isNewer = (a: ResourceVersion, b: ResourceVersion): boolean => (order(a, b) ?? 0) > 0;

/** Whether `a` is certainly no newer than `limit`: without an order only where they are the same. */
export const isUpTo = (a: ResourceVersion, limit: ResourceVersion): boolean => (order(a, limit) ?? 1) <= 0;

/** The newer of two; where they have no order `b`, because it came later. */
export const newerOf = (a: ResourceVersion | undefined, b: ResourceVersion): ResourceVersion =>
  a !== undefined && isNewer(a, b) ? a : b;

/** For a sort, oldest first: those without an order stay as they were. */
export const byAge = (a: ResourceVersion, b: ResourceVersion): number => order(a, b) ?? 0;

/** Whether it can be ordered: digits alone, without a leading zero. Only such a position can be resumed. */
export function isOrdered(version: ResourceVersion): boolean {
  if (version.length === 0) return false;
  const first = version.charCodeAt(0);
  if (first < 0x31 || first > 0x39) return false;
  for (let index = 1; index < version.length; index++) {
    const code = version.charCodeAt(index);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}

/** The newest that is older; undefined of one without an order. */
export const predecessor = (version: ResourceVersion): ResourceVersion | undefined =>
  isOrdered(version) ? resourceVersion(String(BigInt(version) - 1n)) : undefined;

/** Negative, zero or positive, as for a sort; undefined where two differ and have no order. */
function order(a: ResourceVersion, b: ResourceVersion): number | undefined {
  if (a === b) return 0;
  if (!isOrdered(a) || !isOrdered(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}
