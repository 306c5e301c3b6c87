import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Component, npmPurl } from "./bill.ts";

/** A package with bundled files. */
interface BundledPackage extends Component {
  readonly folder: string;
}

/** Returns the packages that `files` belong to. */
export function packagesOf(files: readonly string[]): BundledPackage[] {
  const folders = new Set(files.flatMap((file) => file.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? []));
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return { name, version, licence: license, purl: npmPurl(name, version), folder };
  });
}

/** Returns the licences of all packages that `files` belong to. */
export function licencesOf(files: readonly string[]): string {
  const texts = packagesOf(files).map(({ name, version, licence, folder }) => {
    const found = globSync("{LICENSE,LICENCE,license,NOTICE}*", { cwd: folder });
    return [`${name} ${version} (${licence})`, ...found.map((file) => readFileSync(join(folder, file), "utf8"))];
  });
  return texts.map((text) => text.join("\n\n")).join("\n---\n\n");
}
