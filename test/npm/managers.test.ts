import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { Project } from "./project.ts";

const example = join(import.meta.dirname, "../../functions/hello");
/** With CI set, Yarn refuses to create a lock file, which these projects lack. */
const yarnSettings = "enableTelemetry: false\nenableScripts: false\nenableImmutableInstalls: false\n";
const program = "node_modules/@watchfire/runtime/bin/watchfire.js";

/**
 * A project that depends on the tarballs. Each tarball also replaces the package of its name that another one would fetch from
 * npm.
 */
function projectWith(files: Readonly<Record<string, string>> = {}): Project {
  const project = Project.empty();
  const tarballs = inject("tarballs").filter((each) => !each.includes("create-watchfire"));
  const packages = Object.fromEntries(
    tarballs.map((each) => [`@watchfire/${/^watchfire-(\w+)-/.exec(basename(each))?.[1]}`, `file:${each}`]),
  );
  const ofProject = JSON.parse(readFileSync(join(project.folder, "package.json"), "utf8"));
  const all = { ...ofProject, dependencies: packages, overrides: packages, resolutions: packages };
  writeFileSync(join(project.folder, "package.json"), JSON.stringify({ ...all, pnpm: { overrides: packages } }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project.folder, name), text);
  cpSync(example, join(project.folder, "functions/hello"), { recursive: true });
  return project;
}

async function runsHello(project: Project): Promise<void> {
  const dev = project.start("node", program, "dev", "--port", "0");
  await dev.says(/hello {2}Added v1\/ConfigMap demo\/app-settings {2}ok/);
  dev.signal("SIGINT");
  await dev.says(/drained/);
}

describe("a function runs where the packages were installed", () => {
  it.each<[string, readonly string[], Readonly<Record<string, string>>]>([
    ["pnpm, which links them", ["pnpm@10", "install"], {}],
    ["bun", ["bun@1", "install"], {}],
    [
      "Yarn, into node_modules",
      ["@yarnpkg/cli-dist@4", "install"],
      { ".yarnrc.yml": `nodeLinker: node-modules\n${yarnSettings}`, "yarn.lock": "" },
    ],
  ])("by %s", { timeout: 240_000 }, async (_, words, files) => {
    const project = projectWith(files);
    project.run("npx", "--yes", ...words);
    await runsHello(project);
  });

  it("by npm, which nested a package below the runtime", { timeout: 240_000 }, async () => {
    const project = projectWith();
    project.run("npm", "install", "--prefer-offline", "--ignore-scripts");
    mkdirSync(join(project.folder, "node_modules/@watchfire/runtime/node_modules/other"), { recursive: true });
    await runsHello(project);
  });
});

it("Yarn's Plug'n'Play is refused, with what to do instead", { timeout: 240_000 }, () => {
  const project = projectWith({ ".yarnrc.yml": yarnSettings, "yarn.lock": "" });
  const yarn = (...words: string[]) => project.run("npx", "--yes", "@yarnpkg/cli-dist@4", ...words);
  yarn("install");
  expect(() => yarn("watchfire", "validate")).toThrow(/^WF_CLI_PNP: .*`nodeLinker: node-modules`/m);
});
