import { execFileSync } from "node:child_process";
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import type { CompiledPackage, Package } from "./packages.ts";

const require = createRequire(import.meta.url);
const tsc = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");

/**
 * Compiles a package's sources into `<to>/dist`, with declarations and maps, and copies the sources to `<to>/src`, where the maps
 * refer to.
 * @throws the errors of tsc
 */
export function compile({ folder, without, assets, within }: CompiledPackage, to: string): void {
  const sources = sourcesOf(folder).filter((file) => !without.includes(file));
  for (const file of [...sources, ...assets]) copy(join(folder, file), join(to, "src", file));
  for (const each of within) bringAlong(each, join(to, "src"));
  const project = join(to, "tsconfig.json");
  writeFileSync(project, JSON.stringify(settings(to)));
  try {
    execFileSync(process.execPath, [tsc, "-p", project], { encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    throw new Error((error as { stdout?: string }).stdout || String(error));
  }
  for (const file of assets) copy(join(folder, file), join(to, "dist", file));
  for (const file of globSync("dist/**/*.d.ts", { cwd: to })) importJavaScript(join(to, file));
}

const sourcesOf = (folder: string): string[] => globSync("**/*.ts", { cwd: folder, exclude: ["**/node_modules"] });

/** Copies a package's sources below `to`, and has the sources there import them by path. */
function bringAlong({ name, folder }: Package, to: string): void {
  const own = join(to, basename(folder));
  for (const file of sourcesOf(folder)) copy(join(folder, file), join(own, file));
  for (const file of sourcesOf(to)) {
    const text = readFileSync(join(to, file), "utf8");
    const path = relative(dirname(join(to, file)), join(own, "index.ts"));
    const door = path.startsWith(".") ? path : `./${path}`;
    writeFileSync(join(to, file), text.replaceAll(`from "${name}";`, `from "${door}";`));
  }
}

const settings = (to: string) => ({
  extends: join(import.meta.dirname, "../../tsconfig.json"),
  compilerOptions: {
    noEmit: false,
    rootDir: join(to, "src"),
    outDir: join(to, "dist"),
    declaration: true,
    declarationMap: true,
    sourceMap: true,
    rewriteRelativeImportExtensions: true,
    typeRoots: [join(dirname(require.resolve("@types/node/package.json")), "..")],
  },
  include: [join(to, "src")],
  exclude: [],
});

/** Rewrites imports of `./x.ts`, which tsc keeps in declarations, to `./x.js`. */
function importJavaScript(file: string): void {
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace(/(from |import\()"(\.{1,2}\/[^"]*)\.ts"/g, '$1"$2.js"'));
}

export function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}
