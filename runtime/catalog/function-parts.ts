import { createHash } from "node:crypto";
import { relative, resolve } from "node:path";
import { entrySource } from "../bundle/source-path.ts";

/** Bytes of a source map that is unpacked. Earlier versions deployed such; now none is above `appliedMapLimit`. */
export const mapLimit = 8 * 1024 * 1024;

/** What one function is made of, wherever it is kept; `sourceMap` is "" where it was left out. */
export interface FunctionParts {
  /** The manifest's own text. */
  readonly manifest: string;
  readonly script: string;
  readonly sourceMap: string;
}

/** sha256 in hex. Each part has its length before it, so that none can pass for the end of another. */
export function hashOf({ manifest, script, sourceMap }: FunctionParts): string {
  const hash = createHash("sha256");
  for (const part of [manifest, script, sourceMap]) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest("hex");
}

/**
 * A source map without the sources' text, which is most of it, and without this machine's paths.
 * @param root absolute; what the map's files are named relative to
 */
export function portableMap(sourceMap: string, root: string): string {
  const { sourcesContent: _, ...map } = JSON.parse(sourceMap) as { sources: string[]; sourcesContent?: unknown };
  const portable = (source: string) => (source === entrySource ? source : relative(root, resolve(source)));
  return JSON.stringify({ ...map, sources: map.sources.map(portable) });
}
