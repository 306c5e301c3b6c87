import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";

/** Creates a project without functions. Returns its path. */
function project(functions = "functions"): string {
  const folder = folderOf({});
  mkdirSync(join(folder, functions));
  return folder;
}

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

const add = (folder: string, ...words: string[]) => watchfire(["new", ...words], {}, folder);

test("a function is added under its name, with a manifest that names its schema, and says what comes next", async () => {
  const folder = project();
  const { status, stdout, stderr } = await add(folder, "greet");
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const files = ["events/added.json", "function.d.ts", "function.yaml", "handler.ts", "sample.yaml"].map(
    (each) => `functions/greet/${each}`,
  );
  const written = [...files, "test/greet.test.ts", ".vscode/extensions.json", ".vscode/settings.json"];
  expect(stdout).toBe(
    [...written.map((each) => `  ${each}`), "next: npx watchfire test greet && npx watchfire dev\n"].join("\n"),
  );
  expect(filesBelow(folder)).toEqual(written.toSorted());
  const manifest = readFileSync(join(folder, "functions/greet/function.yaml"), "utf8");
  expect(manifest).toMatch(
    /^# yaml-language-server: \$schema=\.\.\/\.\.\/node_modules\/@watchfire\/runtime\/function\.schema\.json\n/,
  );
  expect(manifest).toContain("metadata: { name: greet }\n");
  expect(readFileSync(join(folder, "test/greet.test.ts"), "utf8")).toContain('from "../functions/greet/handler.ts"');
});

test("an editor's settings are added where they are missing, and never replaced", async () => {
  const folder = project("jobs");
  mkdirSync(join(folder, ".vscode"));
  writeFileSync(join(folder, ".vscode/extensions.json"), "mine");
  expect((await add(folder, "greet", "--functions", "jobs")).status).toBe(0);
  expect(readFileSync(join(folder, ".vscode/extensions.json"), "utf8")).toBe("mine");
  expect(JSON.parse(readFileSync(join(folder, ".vscode/settings.json"), "utf8"))).toEqual({
    "yaml.schemas": { "./node_modules/@watchfire/runtime/function.schema.json": "jobs/*/function.yaml" },
  });
  writeFileSync(join(folder, ".vscode/settings.json"), "mine too");
  const { stdout } = await add(folder, "again", "--functions", "jobs");
  expect(stdout).not.toContain(".vscode");
  expect(readFileSync(join(folder, ".vscode/settings.json"), "utf8")).toBe("mine too");
});

test("the functions folder may have another name, and lie elsewhere", async () => {
  const folder = project("jobs");
  const { stdout } = await watchfire([
    "new",
    "tidy",
    "--template",
    "nightly-cleanup",
    "--functions",
    join(folder, "jobs"),
  ]);
  expect(stdout).toContain(`next: npx watchfire test tidy --functions ${folder}/jobs && `);
  expect(filesBelow(folder)).toContain("jobs/tidy/end.ts");
  expect(readFileSync(join(folder, "test/tidy.test.ts"), "utf8")).toContain('from "../jobs/tidy/handler.ts"');
});

test("nothing is written where the function's folder or any of its files is there", async () => {
  for (const [path, template] of [
    ["functions/mine", "hello"],
    ["test/mine.test.ts", "hello"],
    ["types/greetings.example.com.ts", "controller"],
  ] as const) {
    const folder = project();
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), "mine");
    const { status, stdout, stderr } = await add(folder, "mine", "--template", template);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toBe(`WF_CLI_USAGE ${path}: it exists already; take another name, or remove it\n`);
    expect(filesBelow(folder)).toEqual([path]);
    expect(readFileSync(join(folder, path), "utf8")).toBe("mine");
  }
});

test("a system that refuses to write is said with the reason", async () => {
  const folder = project();
  writeFileSync(join(folder, "test"), "a file");
  const { status, stderr } = await add(folder, "mine");
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /^WF_CLI_FOLDER \S+: a file is where a folder should be \(ENOTDIR\); name the functions folder .*\n$/,
  );
});

test.each([
  [[], /^WF_CLI_USAGE: new takes the function's NAME; /],
  [["a", "b"], /^WF_CLI_USAGE: new takes one NAME, got a b; /],
  [
    ["Greet"],
    /^WF_CLI_USAGE: NAME is not a valid function name, got "Greet"; use small letters, digits and -, 63 at most/,
  ],
  [["../a"], /^WF_CLI_USAGE: NAME is not a valid function name, got "\.\.\/a"; /],
  [["a".repeat(64)], /^WF_CLI_USAGE: NAME is not a valid function name, .* 63 at most/],
  [["a", "--template", "secret-miror"], /^WF_CLI_USAGE: there is no such template, .*; did you mean secret-mirror\?$/m],
  [["a", "--template", "toString"], /^WF_CLI_USAGE: there is no such template, got "toString"; there are hello, /],
  [["a", "--functions", "nowhere"], /^WF_MANIFEST_FOLDER nowhere: there is no such folder; /],
])("a mistake is said in one line, and nothing is written: %j", async (words, said) => {
  const folder = project();
  const { status, stdout, stderr } = await add(folder, ...words);
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toMatch(said);
  expect(stderr.trim().split("\n")).toHaveLength(1);
  expect(filesBelow(folder)).toEqual([]);
});
