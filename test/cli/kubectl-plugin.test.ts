import { execFile } from "node:child_process";
import { symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { kubectlPath } from "../tools/kubectl.ts";
import { bin, type Result } from "./run.ts";

/** Runs a program to its end. Its PATH begins with a folder that has the plugin, as npm links it. */
function run(program: string, ...words: string[]): Promise<Result> {
  const folder = folderOf({});
  symlinkSync(bin, join(folder, "kubectl-watchfire"));
  const PATH = [folder, dirname(process.execPath), process.env.PATH].join(":");
  return new Promise((done) => {
    execFile(
      program === "" ? join(folder, "kubectl-watchfire") : program,
      words,
      { env: { PATH } },
      (error, stdout, stderr) => done({ status: typeof error?.code === "number" ? error.code : 0, stdout, stderr }),
    );
  });
}

test("the plugin is the same program, and its help says `kubectl watchfire`", async () => {
  const [overview, help, wrong, option] = await Promise.all([
    run("", "--help"),
    run("", "status", "--help"),
    run("", "statos"),
    run("", "status", "more"),
  ]);
  expect(overview.stdout).toMatch(/^kubectl watchfire <command> \[options\]\n/);
  expect(overview.stdout).toMatch(
    /kubectl watchfire <command> --help lists .*, kubectl watchfire --version prints the version\.\n$/,
  );
  expect(help.stdout).toMatch(/^kubectl watchfire status \[options\]\n/);
  expect(wrong).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("did you mean `kubectl watchfire status`?"),
  });
  expect(option).toMatchObject({ status: 1, stderr: expect.stringContaining("run `kubectl watchfire status --help`") });
});

test("kubectl finds the plugin and passes its words", async () => {
  const kubectl = await kubectlPath();
  expect(await run(kubectl, "plugin", "list")).toMatchObject({ stdout: expect.stringContaining("kubectl-watchfire") });
  const { stdout } = await run(kubectl, "watchfire", "dead-letters", "--help");
  expect(stdout).toMatch(/^kubectl watchfire dead-letters list \| show ID /);
});
