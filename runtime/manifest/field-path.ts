/** What a changed field looks like, for editors: `.data`, `.metadata.labels`, `.metadata.annotations["a.b/c"]`. */
export const fieldPathPattern = /^(?:\.[A-Za-z_$][\w$-]*|\["[^"\\]+"\]|\['[^'\\]+'\])+$/;

/**
 * The segments of a field's path, or undefined where it is none. Lists have no paths inside them: they are compared whole,
 * since an index names another item as soon as one is put before it.
 */
export function parseFieldPath(path: string): string[] | undefined {
  if (!fieldPathPattern.test(path) || !path.startsWith(".")) return undefined;
  const segments = path.matchAll(/\.([A-Za-z_$][\w$-]*)|\["([^"\\]+)"\]|\['([^'\\]+)'\]/g);
  return [...segments].map(([, plain, double, single]) => plain ?? double ?? single ?? "");
}
