import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** Returns the package.json of a compiled package, in which paths of sources are replaced by those of the compiled files. */
export function compiledManifest(folder: string): object {
  const { exports = {}, ...manifest } = readManifest(folder);
  const doors = Object.entries(exports).map(([door, file]) => [door, compiled(file)]);
  return {
    ...manifest,
    exports: { ...Object.fromEntries(doors), "./package.json": "./package.json" },
    files: ["dist", "src", "CHANGELOG.md"],
    engines: { node: ">=20", ...(manifest.engines as object | undefined) },
  };
}

function compiled(file: string): object {
  const base = file.replace(/^\.\//, "./dist/").replace(/\.ts$/, "");
  return { types: `${base}.d.ts`, default: `${base}.js` };
}

/** Returns the package.json of the bundled runtime: it depends on the packages outside of the bundle, and exports only data. */
export function bundledManifest(folder: string, external: readonly string[]): object {
  const { exports: _, dependencies = {}, ...manifest } = readManifest(folder);
  const kept = Object.entries(dependencies).filter(([name]) => external.includes(name));
  return {
    ...manifest,
    dependencies: Object.fromEntries(kept),
    exports: { "./function.schema.json": "./function.schema.json", "./package.json": "./package.json" },
    scripts: { preinstall: "node bin/preinstall.js" },
    files: ["bin", "sandbox", "function.schema.json", "THIRD-PARTY-LICENSES", "CHANGELOG.md"],
    // Node versions that its programs support; on an older one the launcher says what is needed.
    engines: { node: "^24 || ^26" },
  };
}

/** Returns the package.json of the program that creates a project: it has no dependencies. */
export function createManifest(folder: string): object {
  const { exports: _, dependencies: __, ...manifest } = readManifest(folder);
  return {
    ...manifest,
    bin: { "create-watchfire": "create-watchfire.js" },
    files: ["create-watchfire.js", "THIRD-PARTY-LICENSES", "CHANGELOG.md"],
    engines: { node: ">=20" },
  };
}

function readManifest(folder: string): Manifest {
  const { private: _, ...manifest } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  return manifest;
}
