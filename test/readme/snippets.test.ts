import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse as parseYaml } from "yaml";
import { parse } from "../../runtime/cli/command.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { readManifests } from "../../runtime/manifest/read.ts";
import { functionTypes } from "../../runtime/types/function-types.ts";
import { blocks, commandsOf, userPages } from "./blocks.ts";
import { commands } from "./sections.ts";

const root = join(import.meta.dirname, "../..");
const cache = join(root, "node_modules/.cache/watchfire");

/** A folder in the checkout, so that the snippets' imports are found. */
let folder: string;
beforeAll(() => {
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, "snippets-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(file: string, text: string): string {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
  return file;
}

describe("the snippets of the pages", () => {
  it("in TypeScript pass the strict compiler, and those that are tests pass", { timeout: 60_000 }, () => {
    const files = blocks
      .filter(({ language }) => language === "ts")
      .map(({ text }, no) => write(/^\/\/ (\S+\.ts)\n/.exec(text)?.[1] ?? `snippet-${no}.ts`, text));
    expect(files.length).toBeGreaterThan(6);
    for (const { text } of blocks.filter(
      ({ language, text }) => language === "yaml" && text.includes("kind: Function"),
    )) {
      const manifests = readManifests(text, "functions/NAME/function.yaml", undefined).flatMap(
        (each) => each.manifest ?? [],
      );
      for (const types of functionTypes(manifests)) write(`functions/${types.name}/function.d.ts`, types.text);
    }
    write("tsconfig.json", JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["**/*.ts"], exclude: [] }));
    write("vitest.config.ts", "export default {};\n");
    const run = (program: string, ...words: string[]) => {
      try {
        execFileSync(process.execPath, [join(root, "node_modules", program), ...words], { cwd: folder, stdio: "pipe" });
      } catch (error) {
        const { stdout, stderr } = error as { stdout: Buffer; stderr: Buffer };
        throw new Error(`${stdout}${stderr}`);
      }
    };
    run("typescript/bin/tsc", "--noEmit", "-p", ".");
    expect(files.filter((file) => file.endsWith(".test.ts"))).not.toEqual([]);
    run("vitest/vitest.mjs", "run", "--root", folder);
  });

  it("in YAML are manifests without a fault, or a part of one", async () => {
    const base = { apiVersion: "watchfire.dev/v1alpha1", kind: "Function" };
    const trigger = { watch: { apiVersion: "v1", kind: "ConfigMap" } };
    // Those pages have alert rules, values of the chart, or objects of other projects.
    const yaml = blocks.filter(
      ({ language, page }) => language === "yaml" && !/(runbook|platforms|traces|gitops)[.]md$/.test(page),
    );
    const names = yaml.map(({ text }, no) => {
      const part = parseYaml(text);
      if (part.kind === "Function") {
        write(`yaml/${no}/function.yaml`, text);
      } else {
        const { matchConditions, ...fields } = part;
        const watch = matchConditions ? { ...trigger.watch, matchConditions } : trigger.watch;
        const spec = { handler: "./handler.ts", triggers: [{ watch }], ...(fields.spec ?? fields) };
        write(`yaml/${no}/function.yaml`, JSON.stringify({ ...base, metadata: { name: `part-${no}` }, spec }));
      }
      write(`yaml/${no}/handler.ts`, "export default () => {};\n");
      return no;
    });
    const { functions, faults } = await loadFunctions(join(folder, "yaml"));
    expect(faults.map(({ message }) => message)).toEqual([]);
    expect(functions).toHaveLength(names.length);
  });
});

describe.each(userPages)("the commands of %s", (page) => {
  it("call `watchfire` as it can be called", () => {
    for (const line of commandsOf(page)) {
      for (const [, words = ""] of line.matchAll(/(?:npx|--) watchfire ([^|&;]+)/g)) {
        const [name, ...rest] = words.trim().split(/\s+/);
        const command = commands.find((each) => each.name === name);
        expect(command, line).toBeDefined();
        if (command) expect(() => parse(command, rest), line).not.toThrow();
      }
    }
  });

  it("run no npm script that is not there", () => {
    const ofProject = readFileSync(join(root, "runtime/cli/new-project/project.ts"), "utf8");
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const named = commandsOf(page).flatMap((line) =>
      [...line.matchAll(/npm run ([\w:]+)/g)].map(([, name = ""]) => name),
    );
    const isThere = (name: string) => scripts[name] || new RegExp(`\\b${name}: "`).test(ofProject);
    expect(named.filter((name) => !isThere(name))).toEqual([]);
  });
});
