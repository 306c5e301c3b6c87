declare const brand: unique symbol;

/**
 * The resourceVersion of an object, a bookmark or a list: a position in the history of one resource, as sent by the API server.
 *
 * Since 1.35 Kubernetes promises positive decimal integers of up to 128 bit (apimachinery `resourceversion.go`). So a longer one
 * is newer, and equal lengths compare as text; no number type is wide enough. Some aggregated APIs use opaque text instead.
 * Opaque versions have no order: neither of two is newer, and `isUpTo` holds only if they are equal.
 */
export type ResourceVersion = string & { readonly [brand]: "ResourceVersion" };

/** Marks a text from an API server, or from storage, as a resourceVersion. "" means that there is no version. */
export const resourceVersion = (text: string): ResourceVersion => text as ResourceVersion;

/** The absent resourceVersion. */
export const noResourceVersion: ResourceVersion = resourceVersion("");

/** Converts a text that may be absent. Returns `undefined` for `undefined`, null and "". */
export const resourceVersionIn = (text: string | null | undefined): ResourceVersion | undefined =>
  text ? resourceVersion(text) : undefined;

/** Whether `a` is certainly newer than `b`. False if the two have no order. */
export const isNewer = (a: ResourceVersion, b: ResourceVersion): boolean => (order(a, b) ?? 0) > 0;

/** Whether `a` is certainly not newer than `limit`. Without an order, true only if they are equal. */
export const isUpTo = (a: ResourceVersion, limit: ResourceVersion): boolean => (order(a, limit) ?? 1) <= 0;

/** Returns the newer of two. If they have no order, returns `b`, because it was received later. */
export const newerOf = (a: ResourceVersion | undefined, b: ResourceVersion): ResourceVersion =>
  a !== undefined && isNewer(a, b) ? a : b;

/** Compares for a sort, oldest first. Versions without an order compare as equal. */
export const byAge = (a: ResourceVersion, b: ResourceVersion): number => order(a, b) ?? 0;

/** Whether it can be ordered: only digits, without a leading zero. The runtime resumes watches only from such versions. */
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

/** Returns the newest older version; `undefined` for a version without an order. */
export const predecessor = (version: ResourceVersion): ResourceVersion | undefined =>
  isOrdered(version) ? resourceVersion(String(BigInt(version) - 1n)) : undefined;

/** Returns a negative number, zero or a positive number, as for a sort; `undefined` if two differ and have no order. */
function order(a: ResourceVersion, b: ResourceVersion): number | undefined {
  if (a === b) return 0;
  if (!isOrdered(a) || !isOrdered(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}
