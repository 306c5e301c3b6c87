import { z } from "zod";
import type { Bundle } from "./bundle.ts";
import { appliedMapLimit } from "./limits.ts";

const sourceMapSchema = z.looseObject({
  sources: z.array(z.string().nullable()),
  sourcesContent: z.array(z.string().nullable()).optional(),
});

type ParsedSourceMap = z.infer<typeof sourceMapSchema>;

/** Maps that were read, for as long as their bundles are there. */
const read = new WeakMap<Pick<Bundle, "sourceMap">, ParsedSourceMap>();

/**
 * The text of a file as it was when the bundle was built, by the name that stacks have. Undefined for a file that is
 * none of the bundle's, and for a package's.
 */
export function sourceText(bundle: Pick<Bundle, "sourceMap" | "sourceMapLength">, file: string): string | undefined {
  // A stack names no file of a map that is not applied.
  if (/(?:^|\/)node_modules\//.test(file) || bundle.sourceMapLength > appliedMapLimit) return undefined;
  const map = read.get(bundle) ?? sourceMapSchema.parse(JSON.parse(bundle.sourceMap));
  read.set(bundle, map);
  const index = map.sources.indexOf(file);
  return index < 0 ? undefined : (map.sourcesContent?.[index] ?? undefined);
}
