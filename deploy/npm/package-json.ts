import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** The workspace's package.json as it is published: what names a source names what is made of it. */
export function publishedManifest(folder: string): Manifest {
  const {
    exports = {},
    private: _,
    ...manifest
  } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  const doors = Object.entries(exports).map(([door, file]) => [door, compiled(file)]);
  return {
    ...manifest,
    exports: { ...Object.fromEntries(doors), "./package.json": "./package.json" },
    files: ["dist", "src"],
    engines: { node: ">=20", ...(manifest.engines as object | undefined) },
  } as Manifest;
}

function compiled(file: string): object {
  const base = file.replace(/^\.\//, "./dist/").replace(/\.ts$/, "");
  return { types: `${base}.d.ts`, default: `${base}.js` };
}
