import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

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
