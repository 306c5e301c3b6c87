// Part of npm run release:version: gives the version that `changeset version` wrote to what follows the packages.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runtime } from "../npm/packages.ts";

const checkout = join(import.meta.dirname, "../../package.json");
const chart = join(import.meta.dirname, "../chart/Chart.yaml");

/** A Chart.yaml with this version: the chart's own, its runtime's, and its image's. */
export const chartAt = (version: string, text: string): string =>
  text.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`).replace(/^( +image: .*:).*$/m, `$1${version}`);

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(runtime.folder, "package.json"), "utf8")) as { version: string };
  const manifest = readFileSync(checkout, "utf8");
  writeFileSync(checkout, manifest.replace(/^( {2}"version": ).*$/m, `$1"${version}",`));
  writeFileSync(chart, chartAt(version, readFileSync(chart, "utf8")));
}
