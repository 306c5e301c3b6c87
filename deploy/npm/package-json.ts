import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { CompiledPackage } from "./packages.ts";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/**
 * The package.json of a compiled package: where the workspace's names a source, it names what is made of it. The dependencies of
 * a package within it are its dependencies.
 */
export function compiledManifest({ folder, within }: CompiledPackage): object {
  const { exports = {}, dependencies = {}, ...manifest } = readManifest(folder);
  const needed = Object.entries(dependencies).flatMap(([name, version]) => {
    const brought = within.find((each) => each.name === name);
    return brought ? Object.entries(readManifest(brought.folder).dependencies ?? {}) : [[name, version] as const];
  });
  const doors = Object.entries(exports).map(([door, file]) => [door, compiled(file)]);
  return {
    ...manifest,
    ...(needed.length > 0 && { dependencies: Object.fromEntries(needed.sort()) }),
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
