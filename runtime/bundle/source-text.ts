import { z } from "zod";
import type { Bundle } from "./bundle.ts";
import { appliedMapLimit } from "./limits.ts";

const sourceMapSchema = z.looseObject({
  sources: z.array(z.string().nullable()),
  sourcesContent: z.array(z.string().nullable()).optional(),
});

type ParsedSourceMap = z.infer<typeof sourceMapSchema>;

/** Parsed maps, kept as long as their bundles. */
const read = new WeakMap<Pick<Bundle, "sourceMap">, ParsedSourceMap>();

/**
 * Returns the text of a file when the bundle was built, by its name in stacks. `undefined` for a file that is not in the bundle,
 * and for one of a package.
 */
export function sourceText(bundle: Pick<Bundle, "sourceMap" | "sourceMapLength">, file: string): string | undefined {
  // Stacks do not name files of a map that is not applied.
  if (/(?:^|\/)node_modules\//.test(file) || bundle.sourceMapLength > appliedMapLimit) return undefined;
  const map = read.get(bundle) ?? sourceMapSchema.parse(JSON.parse(bundle.sourceMap));
  read.set(bundle, map);
  const index = map.sources.indexOf(file);
  return index < 0 ? undefined : (map.sourcesContent?.[index] ?? undefined);
}
