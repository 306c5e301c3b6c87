// Part of npm run release:version: copies the version that `changeset version` wrote to all files that follow the packages.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runtime } from "../npm/packages.ts";

const root = join(import.meta.dirname, "../..");
const checkout = join(root, "package.json");
const chart = join(root, "deploy/chart/Chart.yaml");

/** Files that mention the version next to Watchfire's name: in a banner, an image, a tarball. */
export const mentions: readonly string[] = [
  "README.md",
  "runtime/docs/deploying.md",
  "runtime/docs/disaster-recovery.md",
  "deploy/DESIGN.md",
  "deploy/npm/DESIGN.md",
  "deploy/functions.Dockerfile",
  "runtime/cli/new-project/templates/common/Dockerfile",
];

/** Returns a Chart.yaml with this version: the chart's own, its runtime's, and its image's. */
export const chartAt = (version: string, text: string): string =>
  text.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`).replace(/^( +image: .*:).*$/m, `$1${version}`);

/** Returns a text in which each mention, such as `watchfire:1.2.3` or `watchfire-sdk-1.2.3.tgz`, has this version. */
export const mentionsAt = (version: string, text: string): string =>
  text.replace(/\b(watchfire(?:-[a-z]+)?[-: ])\d+\.\d+\.\d+\b/g, `$1${version}`);

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(runtime.folder, "package.json"), "utf8")) as { version: string };
  const manifest = readFileSync(checkout, "utf8");
  writeFileSync(checkout, manifest.replace(/^( {2}"version": ).*$/m, `$1"${version}",`));
  writeFileSync(chart, chartAt(version, readFileSync(chart, "utf8")));
  for (const file of mentions.map((each) => join(root, each)))
    writeFileSync(file, mentionsAt(version, readFileSync(file, "utf8")));
}
