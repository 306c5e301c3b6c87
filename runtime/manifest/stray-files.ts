import { readdirSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { isBuilt } from "./built.ts";
import type { FunctionManifest } from "./function.ts";

/** Names that people give to a manifest, and that are not read. */
const misnamed = /^(?:functions?|manifest|watchfire)\.ya?ml$/i;
const handlerFile = /^handler\.[cm]?[jt]sx?$/;

/**
 * Returns a warning for each folder that looks like a function's and has no `function.yaml`: it has a manifest by another name, or
 * a handler that no manifest names.
 */
export function strayWarnings(
  folder: string,
  functions: readonly Pick<FunctionManifest, "handler">[],
): WatchfireError[] {
  if (isBuilt(folder)) return [];
  const named = new Set(functions.map(({ handler }) => resolve(handler)));
  return foldersIn(folder).flatMap((path) => {
    const names = namesIn(path);
    if (names.some((name) => /^function\.ya?ml$/.test(name))) return [];
    const manifest = names.find((name) => misnamed.test(name));
    if (manifest !== undefined) {
      const hint = `rename it to ${join(relative(process.cwd(), path), "function.yaml")}`;
      return [stray(join(path, manifest), "no function is read from a file of this name", hint)];
    }
    const handler = names.find((name) => handlerFile.test(name));
    if (handler === undefined || named.has(resolve(path, handler))) return [];
    return [stray(join(path, handler), "there is no function.yaml next to this handler")];
  });
}

const stray = (file: string, what: string, hint?: string): WatchfireError =>
  new WatchfireError("WF_MANIFEST_STRAY", { what, place: { file }, ...(hint !== undefined && { hint }) });

/** Unreadable folders are reported by whoever loads the manifests. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

const foldersIn = (folder: string): string[] =>
  namesIn(folder)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
