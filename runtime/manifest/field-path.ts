/** Pattern of a changed field's path, for editors: `.data`, `.metadata.labels`, `.metadata.annotations["a.b/c"]`. */
export const fieldPathPattern = /^(?:\.[A-Za-z_$][\w$-]*|\["[^"\\]+"\]|\['[^'\\]+'\])+$/;

/**
 * Returns the segments of a field's path, or `undefined` if it is malformed. Paths do not lead into lists, which are compared as
 * a whole: an index refers to another item as soon as one is inserted before it.
 */
export const parseFieldPath = (path: string): string[] | undefined =>
  fieldPathPattern.test(path) ? segmentsOf(path) : undefined;

/** Segment of an index's path for each item of a list, written `[*]`. No field in a path has an empty name. */
export const eachItem = "";

/** Pattern of an index's path: as a changed field's, or through lists as in `.metadata.ownerReferences[*].uid`. */
export const indexPathPattern = /^(?:\.[A-Za-z_$][\w$-]*|\["[^"\\]+"\]|\['[^'\\]+'\]|\[\*\])+$/;

/** Returns the segments of an index's path, or `undefined` if it is malformed. */
export const parseIndexPath = (path: string): string[] | undefined =>
  indexPathPattern.test(path) ? segmentsOf(path) : undefined;

function segmentsOf(path: string): string[] | undefined {
  if (!path.startsWith(".")) return undefined;
  const segments = path.matchAll(/\.([A-Za-z_$][\w$-]*)|\["([^"\\]+)"\]|\['([^'\\]+)'\]|\[\*\]/g);
  return [...segments].map(([, plain, double, single]) => plain ?? double ?? single ?? eachItem);
}
