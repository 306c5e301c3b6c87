import { execFileSync } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { templateFiles } from "../../runtime/cli/new-project/template-files.ts";
import { type Template, templates } from "../../runtime/cli/new-project/templates.ts";
import { commandsOf } from "../readme/blocks.ts";
import { typedProject } from "../tools/typed-project.ts";
import { until } from "../tools/until.ts";
import { watchfire } from "./run.ts";
import { Session } from "./session.ts";

vi.setConfig({ testTimeout: 120_000 });

const root = join(import.meta.dirname, "../..");
const settings = readFileSync(join(root, "runtime/cli/new-project/templates/common/tsconfig.json"), "utf8");
const names = Object.keys(templates) as Template[];
const nameOf = (template: Template) => `my-${template}`;
const filesOf = (template: Template) => templateFiles(template, { name: nameOf(template) });

/** A project with a function of each template, each with a name other than the template's. */
const project = () =>
  typedProject({ "tsconfig.json": settings, ...Object.assign({}, ...names.map(filesOf)) } as Record<string, string>);

const run = (folder: string, program: string, ...words: string[]) =>
  execFileSync(process.execPath, [join(root, "node_modules", program), ...words], { cwd: folder, encoding: "utf8" });

/** Templates whose permissions cover every namespace, because the right ones are not known beforehand. */
const everywhere: readonly Template[] = ["configmap-sync", "namespace-defaults", "nightly-cleanup"];

test("each template is valid, its types included, and warned of only where it must write everywhere", async () => {
  const { stdout, status } = await watchfire(["validate", "-o", "json"], {}, project());
  const { valid, faults, warnings, unchecked } = JSON.parse(stdout);
  expect({ faults, status }).toEqual({ faults: [], status: 0 });
  expect(valid.toSorted()).toEqual(names.map(nameOf).toSorted());
  expect(unchecked).toEqual([expect.stringContaining("that a cluster serves the kinds")]);
  const warned = warnings.map(({ place }: { place: { file: string } }) => place.file);
  expect(warned.toSorted()).toEqual(everywhere.map((name) => `functions/${nameOf(name)}/function.yaml`));
});

test("each template has fixtures, which hold in the sandbox", async () => {
  const { stdout, stderr } = await watchfire(["test", "-o", "json"], {}, project());
  expect(stderr).toBe("");
  const { fixtures, failed } = JSON.parse(stdout);
  expect(failed, stdout).toBe(0);
  const covered = fixtures.map((each: { function: string }) => each.function);
  expect([...new Set(covered)].sort()).toEqual(names.map(nameOf).sort());
});

test("each template's unit test compiles and passes", () => {
  const folder = project();
  symlinkSync(join(root, "node_modules/vitest"), join(folder, "node_modules/vitest"));
  expect(run(folder, "typescript/bin/tsc", "--noEmit", "-p", ".")).toBe("");
  run(folder, "vitest/vitest.mjs", "run", "--reporter", "json", "--outputFile", "report.json");
  const { success, testResults } = JSON.parse(readFileSync(join(folder, "report.json"), "utf8"));
  expect({ success, files: testResults.length }).toEqual({ success: true, files: names.length });
});

test("each sample fires its function in `watchfire dev`, and is handled", async () => {
  const dev = new Session(["dev"], {}, project());
  // Its sample applies a ConfigMap whose change the function waits for.
  const waits: readonly Template[] = ["restart-on-config"];
  const sampled = names.filter((name) => Object.keys(filesOf(name)).some((path) => path.endsWith("/sample.yaml")));
  for (const name of sampled.filter((each) => !waits.includes(each))) {
    const handled = new RegExp(`${nameOf(name)} {2}(?:Added|Reconcile) .* {2}ok`);
    await until(
      `${name} has handled its sample`,
      20_000,
      async () => handled.test(dev.output) || Promise.reject(dev.output),
    );
  }
  expect(dev.output).not.toMatch(/WF_| {2}failed/);
});

test("the commands of runtime/docs/recipes.md work, in their order", async () => {
  const folder = project();
  const commands = commandsOf("runtime/docs/recipes.md");
  expect(commands.length).toBeGreaterThan(1);
  for (const command of commands) {
    const words = command.replace(/^npx watchfire /, "").split(" ");
    expect(await watchfire(words, {}, folder), command).toMatchObject({ status: 0, stderr: "" });
  }
});
