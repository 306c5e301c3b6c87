/** Pattern of a changed field's path, for editors: `.data`, `.metadata.labels`, `.metadata.annotations["a.b/c"]`. */
export const fieldPathPattern = /^(?:\.[A-Za-z_$][\w$-]*|\["[^"\\]+"\]|\['[^'\\]+'\])+$/;

/**
 * Returns the segments of a field's path, or `undefined` if it is malformed. Paths do not lead into lists, which are compared as
 * a whole: an index refers to another item as soon as one is inserted before it.
 */
export function parseFieldPath(path: string): string[] | undefined {
  if (!fieldPathPattern.test(path) || !path.startsWith(".")) return undefined;
  const segments = path.matchAll(/\.([A-Za-z_$][\w$-]*)|\["([^"\\]+)"\]|\['([^'\\]+)'\]/g);
  return [...segments].map(([, plain, double, single]) => plain ?? double ?? single ?? "");
}
