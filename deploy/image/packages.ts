import { copyFileSync, globSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The packages that cannot be bundled, and the files of them that the image's platform needs. */
const packages: Readonly<Record<string, readonly string[]>> = {
  "isolated-vm": [
    "package.json",
    "LICENSE",
    "isolated-vm.js",
    `prebuilds/linux-${process.arch}/isolated-vm.abi${process.versions.modules}.glibc.node`,
  ],
  "node-gyp-build": ["package.json", "LICENSE", "index.js", "node-gyp-build.js"],
};

/** Copies what cannot be bundled into a `node_modules` folder. */
export function copyPackages(folder: string): void {
  for (const [name, files] of Object.entries(packages)) {
    copy(files, join(root, "node_modules", name), join(folder, name));
  }
}

function copy(files: readonly string[], from: string, to: string): void {
  for (const file of files) {
    mkdirSync(dirname(join(to, file)), { recursive: true });
    copyFileSync(join(from, file), join(to, file));
  }
}

/** The licences of all packages that `files` belong to. */
export function licencesOf(files: readonly string[]): string {
  const folders = new Set(files.flatMap((file) => file.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? []));
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const found = globSync("{LICENSE,LICENCE,license,NOTICE}*", { cwd: folder });
    return [`${name} ${version} (${license})`, ...found.map((file) => readFileSync(join(folder, file), "utf8"))];
  });
  return texts.map((text) => text.join("\n\n")).join("\n---\n\n");
}
