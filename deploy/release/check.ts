// npm run release:check -- TAG: refuses a tag that differs from the version of anything to be published.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compiled, create, runtime } from "../npm/packages.ts";
import { chartAt, mentions, mentionsAt } from "./version.ts";

const root = join(import.meta.dirname, "../..");
const versionOf = (folder: string): string => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;

function isAt(version: string, file: string): boolean {
  const text = readFileSync(join(root, file), "utf8");
  return text === mentionsAt(version, text);
}

/** Returns the reasons against publishing `tag`; empty if there is no reason. */
export function faultsOf(tag: string): string[] {
  const version = versionOf(runtime.folder);
  const chart = readFileSync(join(root, "deploy/chart/Chart.yaml"), "utf8");
  const others = [root, ...[...compiled, create].map(({ folder }) => folder)];
  return [
    ...(tag === `v${version}` ? [] : [`the tag is ${tag}, and the version ${version}`]),
    ...others.filter((folder) => versionOf(folder) !== version).map((folder) => `${folder} has another version`),
    ...(chart === chartAt(version, chart) ? [] : ["the chart has another version"]),
    ...mentions.filter((file) => !isAt(version, file)).map((file) => `${file} shows another version`),
    ...[...compiled, create, runtime]
      .filter(({ folder }) => !readFileSync(join(folder, "CHANGELOG.md"), "utf8").includes(`\n## ${version}\n`))
      .map(({ name }) => `the changelog of ${name} does not mention ${version}`),
    ...globSync("[!R]*.md", { cwd: join(root, ".changeset") }).map(
      (file) => `.changeset/${file} is not in any version`,
    ),
  ];
}

if (import.meta.main) {
  const faults = faultsOf(process.argv[2] ?? "");
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
