import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { templates } from "../../deploy/create/templates.ts";
import { version } from "../../runtime/version.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";

/** Begins a project; the tarballs are empty. */
const init = (name: string, template = "hello") => {
  const names = ["runtime", "sdk", "cluster"].map((each) => `watchfire-${each}-${version}.tgz`);
  const packages = folderOf(Object.fromEntries(names.map((each) => [each, ""])));
  return watchfire(["init", "--name", name, "--template", template, "--packages", packages, "--yes"]);
};

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

test("create-watchfire --help is that of `watchfire init`", async () => {
  const main = join(import.meta.dirname, "../../deploy/create/main.js");
  for (const word of ["--help", "-h"]) {
    const said = execFileSync(process.execPath, [main, word], { encoding: "utf8", stdio: "pipe" });
    expect(said).toBe((await watchfire(["init", "--help"])).stdout);
    expect(said).toContain("--template NAME");
  }
});
