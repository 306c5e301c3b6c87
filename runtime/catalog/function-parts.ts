import { createHash } from "node:crypto";
import { relative, resolve } from "node:path";
import { entrySource } from "../bundle/source-path.ts";

/**
 * Limit of an unpacked source map, in bytes. Earlier versions deployed maps of this size; now maps stay below `appliedMapLimit`.
 */
export const mapLimit = 8 * 1024 * 1024;

/** Parts of one function, however it is stored; `sourceMap` is "" if omitted. */
export interface FunctionParts {
  /** The manifest's own text. */
  readonly manifest: string;
  readonly script: string;
  readonly sourceMap: string;
}

/** Returns the sha256 of the parts in hex. Each part is preceded by its length, so that the boundaries are unambiguous. */
export function hashOf({ manifest, script, sourceMap }: FunctionParts): string {
  const hash = createHash("sha256");
  for (const part of [manifest, script, sourceMap]) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest("hex");
}

/**
 * Returns a source map without the sources' text, which is most of it, and without local paths.
 * @param root absolute path that the map's files are named relative to
 */
export function portableMap(sourceMap: string, root: string): string {
  const { sourcesContent: _, ...map } = JSON.parse(sourceMap) as { sources: string[]; sourcesContent?: unknown };
  const portable = (source: string) => (source === entrySource ? source : relative(root, resolve(source)));
  return JSON.stringify({ ...map, sources: map.sources.map(portable) });
}
