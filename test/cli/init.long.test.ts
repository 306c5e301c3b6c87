import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { version } from "../../runtime/base/version.ts";
import { templates } from "../../runtime/cli/new-project/templates.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";

const main = join(import.meta.dirname, "../../deploy/create/main.js");
const watchfireBin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

/** Empty tarballs. */
const tarballs = () => {
  const names = ["runtime", "sdk", "cluster"].map((each) => `watchfire-${each}-${version}.tgz`);
  return folderOf(Object.fromEntries(names.map((each) => [each, ""])));
};

const init = (name: string, template = "hello", env: NodeJS.ProcessEnv = {}) =>
  watchfire(["init", "--name", name, "--template", template, "--packages", tarballs(), "--yes"], env);

test("a folder that nobody can write is the user's fault, with the folder and the reason", async () => {
  const folder = folderOf({ file: "a file" });
  for (const name of ["file", "file/mine"]) {
    const { status, stdout, stderr } = await init(join(folder, name));
    expect(stderr).toMatch(
      /^WF_CLI_FOLDER .*: a file is where a folder should be \(ENOTDIR\); name a folder .*--name.*\n$/,
    );
    expect(stderr).toContain(join(folder, name));
    expect([status, stdout]).toEqual([1, ""]);
  }
});

test.runIf(process.platform === "linux")("a folder below /proc is a fault instead of a wait for ever", () => {
  const words = ["--packages", tarballs(), "--yes"];
  for (const program of [[main], [watchfireBin, "init"]]) {
    for (const name of ["/proc/mine", "/proc/deep/mine"]) {
      const made = spawnSync(process.execPath, [...program, name, ...words], { encoding: "utf8", timeout: 20_000 });
      expect(made).toMatchObject({ status: 1, stdout: "" });
      expect(made.stderr).toMatch(/^WF_CLI_FOLDER .*\/proc\/.*mine.*\n$/);
    }
  }
});

test("a project brings Node along where npm's own is too old, whichever Node runs the command", async () => {
  for (const [major, adds] of [
    [20, true],
    [24, false],
  ] as const) {
    const mine = join(folderOf({}), "mine");
    const { stdout } = await init(mine, "hello", {
      npm_config_user_agent: `npm/11.19.1 node/v${major}.20.2 linux x64`,
    });
    expect(stdout.includes(`this Node is ${major}, and the runtime needs 24`)).toBe(adds);
    const { devDependencies, engines } = JSON.parse(readFileSync(join(mine, "package.json"), "utf8"));
    expect([Object.hasOwn(devDependencies, "node"), engines.node]).toEqual([adds, adds ? ">=20" : "^24 || ^26"]);
  }
});

test.each(Object.keys(templates))(
  "the README of the template %s names each script there is, and no other",
  async (template) => {
    const mine = join(folderOf({}), "mine");
    expect(await init(mine, template)).toMatchObject({ status: 0, stderr: "" });
    const { scripts } = JSON.parse(readFileSync(join(mine, "package.json"), "utf8"));
    const named = [...readFileSync(join(mine, "README.md"), "utf8").matchAll(/^\| `npm (?:run )?(\w+)`/gm)];
    expect(
      named
        .map(([, name]) => name)
        .filter((name) => name !== "install")
        .sort(),
    ).toEqual(Object.keys(scripts).sort());
    const handlesTypes = template === "controller";
    expect(Object.hasOwn(scripts, "types")).toBe(handlesTypes);
  },
);

const create = (...words: string[]) => spawnSync(process.execPath, [main, ...words], { encoding: "utf8" });

test("create-watchfire --help is that of `watchfire init`", async () => {
  for (const word of ["--help", "-h"]) {
    const said = execFileSync(process.execPath, [main, word], { encoding: "utf8", stdio: "pipe" });
    expect(said).toBe((await watchfire(["init", "--help"])).stdout);
    expect(said).toContain("--template NAME");
  }
});

test.each([
  [["--nmae", "mine"], "there is no option --nmae; did you mean --name?"],
  [["-t", "hello"], "there is no option -t; run `PROGRAM --help`"],
  [["--name"], "--name needs a value: NAME; run `PROGRAM --help`"],
  [["--yes=no"], "--yes takes no value, got no; run `PROGRAM --help`"],
  [["mine", "other"], "init takes one NAME, got mine other; run `PROGRAM --help`"],
  [["--yes"], "name the folder of the packages' tarballs with --packages DIR; run `PROGRAM --help`"],
])("a wrong word has one line, one code and one status, from either program: %j", async (words, said) => {
  const init = await watchfire(["init", ...words]);
  expect(init).toMatchObject({ status: 1, stdout: "" });
  expect(init.stderr).toBe(`WF_CLI_USAGE: ${said.replace("PROGRAM", "watchfire init")}\n`);
  const created = create(...words);
  expect(created).toMatchObject({ status: 1, stdout: "" });
  expect(created.stderr).toBe(`WF_CLI_USAGE: ${said.replace("PROGRAM", "create-watchfire")}\n`);
});

test("the project's name may stand alone, for either program", async () => {
  const folder = folderOf({});
  const words = ["--packages", tarballs(), "--yes"];
  expect(await watchfire(["init", join(folder, "one"), ...words])).toMatchObject({ status: 0, stderr: "" });
  expect(create(join(folder, "two"), ...words)).toMatchObject({ status: 0, stderr: "" });
  expect(readdirSync(folder).sort()).toEqual(["one", "two"]);
  expect(readdirSync(join(folder, "one/.vscode")).sort()).toEqual(["extensions.json", "settings.json"]);
});
