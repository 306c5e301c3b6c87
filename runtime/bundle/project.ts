import { type Dirent, readdirSync, readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { BuildRequest } from "./builder-wire.ts";
import { isBelow, type Root } from "./sources.ts";

/** The files that functions of one folder are built from. */
export type Project = Pick<BuildRequest, "folder" | "realFolder" | "roots" | "ownFolder">;

const sdk = "@watchfire/sdk";

/**
 * Finds the folders that builds of a functions folder may read: that folder, and the `node_modules` of the folders above it. Also
 * packages that are linked from those (of a workspace, or by `npm install ./path`), and the runtime's own SDK. Links from within
 * the functions folder do not count.
 * @throws WatchfireError WF_MANIFEST_FOLDER if there is no such folder
 */
export function readProject(functions: string): Project {
  const folder = resolve(functions);
  const realFolder = realPathOf(folder);
  const installed = foldersAbove(realFolder).map((above) => join(above, "node_modules"));
  const ownFolder = packageFolder(createRequire(import.meta.url).resolve(sdk));
  const label = (path: string) => relative(realFolder, path).split(sep).join("/");
  const rootOf = (path: string, hidesDotNames: boolean): Root => ({ path, label: label(path), hidesDotNames });
  return {
    folder,
    realFolder,
    ownFolder,
    roots: [
      { path: ownFolder, label: sdk, hidesDotNames: true },
      { path: realFolder, label: "", hidesDotNames: true },
      ...installed.flatMap(withRealPath).map((path) => rootOf(path, false)),
      ...installed
        .flatMap(linkedPackages)
        .filter((path) => !isBelow(path, realFolder))
        .map((path) => rootOf(path, true)),
    ],
  };
}

function realPathOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (cause) {
    throw new WatchfireError("WF_MANIFEST_FOLDER", { what: systemReason(cause), place: { file: folder }, cause });
  }
}

function foldersAbove(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [] : [above, ...foldersAbove(above)];
}

/** A whole `node_modules` may be a link to another, and a missing one may be created later. */
function withRealPath(folder: string): string[] {
  try {
    const real = realpathSync(folder);
    return real === folder || basename(real) !== "node_modules" ? [folder] : [folder, real];
  } catch {
    return [folder];
  }
}

/** Returns the folders that links in a `node_modules` lead to, if the package name there matches the link. */
function linkedPackages(installed: string): string[] {
  const names = entries(installed).flatMap((entry) => {
    if (!entry.name.startsWith("@")) return entry.isSymbolicLink() ? [entry.name] : [];
    const scoped = entries(join(installed, entry.name)).filter((each) => each.isSymbolicLink());
    return scoped.map(({ name }) => `${entry.name}/${name}`);
  });
  return names.flatMap((name) => {
    try {
      const folder = realpathSync(join(installed, name));
      const { name: claimed } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name?: unknown };
      return claimed === name ? [folder] : [];
    } catch {
      return []; // the link leads nowhere, or not to a package
    }
  });
}

function entries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Returns the real folder of the package that a file belongs to. */
function packageFolder(file: string): string {
  const real = realpathSync(file);
  const isPackage = (folder: string) => entries(folder).some(({ name }) => name === "package.json");
  const found = foldersAbove(real).find(isPackage);
  if (found === undefined) throw new TypeError(`${file} belongs to no package`);
  return found;
}
