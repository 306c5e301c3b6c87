import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../base/version.ts";
import { templates } from "./templates.ts";

/** Everything that projects are made from. */
interface Material {
  /** The files of folders, by their paths in it: `common` and each template. */
  readonly folders: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The version of Watchfire's packages. */
  readonly version: string;
  /** Versions of the other packages that a project uses. */
  readonly tools: Readonly<Record<"node" | "typescript" | "vitest", string>>;
}

const root = join(import.meta.dirname, "../../..");

/** Functions of this checkout that are used as templates unchanged, each with its unit test. */
const shipped: Readonly<Record<string, string>> = {
  "configmap-sync": "configmap-sync-handler",
  "crash-notify": "crash-notify",
  "nightly-cleanup": "nightly-cleanup",
};

function readMaterial(): Material {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { node, typescript, vitest } = devDependencies as Record<string, string>;
  if (!node || !typescript || !vitest) throw new Error("a tool's version is missing in package.json");
  const names = ["common", ...Object.keys(templates)];
  return {
    folders: Object.fromEntries(names.map((name) => [name, readTemplate(name)])),
    version,
    tools: { node, typescript, vitest },
  };
}

function readTemplate(name: string): Record<string, string> {
  const test = shipped[name];
  if (test === undefined) return readFiles(join(import.meta.dirname, "templates", name));
  const files = Object.entries(readFiles(join(root, "functions", name)));
  const text = readFileSync(join(root, `test/functions/${test}.test.ts`), "utf8");
  return {
    ...Object.fromEntries(files.map(([path, text]) => [`functions/${name}/${path}`, text])),
    [`test/${name}.test.ts`]: text.replaceAll('"../../functions/', '"../functions/'),
  };
}

function readFiles(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}

/** Read from the checkout. A bundle replaces this module by the value. */
export const material = readMaterial();
