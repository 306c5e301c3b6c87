import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../base/version.ts";
import { templates } from "./templates.ts";

/** Everything that a project is made of. */
interface Material {
  /** A folder's files, by their paths below it: those of `common` and of each template. */
  readonly folders: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The version of Watchfire's packages. */
  readonly version: string;
  /** The versions of what a project uses besides. */
  readonly tools: Readonly<Record<"node" | "typescript" | "vitest", string>>;
}

function readMaterial(): Material {
  const { devDependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"));
  const { node, typescript, vitest } = devDependencies as Record<string, string>;
  if (!node || !typescript || !vitest) throw new Error("a tool's version is missing in package.json");
  const names = ["common", ...Object.keys(templates)];
  return {
    folders: Object.fromEntries(names.map((name) => [name, readFiles(join(import.meta.dirname, "templates", name))])),
    version,
    tools: { node, typescript, vitest },
  };
}

function readFiles(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

/** As the checkout has it. A bundle replaces this module by the value. */
export const material = readMaterial();
