import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Packages that cannot be bundled, with the files that the image's platform needs. */
const packages: Readonly<Record<string, readonly string[]>> = {
  "isolated-vm": [
    "package.json",
    "LICENSE",
    "isolated-vm.js",
    `prebuilds/linux-${process.arch}/isolated-vm.abi${process.versions.modules}.glibc.node`,
  ],
  "node-gyp-build": ["package.json", "LICENSE", "index.js", "node-gyp-build.js"],
};

/** The folders that they are copied from. */
export const copied: readonly string[] = Object.keys(packages).map((name) => join(root, "node_modules", name));

/** Copies these packages into a `node_modules` folder. */
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
