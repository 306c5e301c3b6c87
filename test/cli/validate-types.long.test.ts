import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { typedProject } from "../tools/typed-project.ts";
import { watchfire } from "./run.ts";
import { manifest } from "./session.ts";

const handler = (words: string) => `
import { defineHandler } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
export default defineHandler<V1ConfigMap>((event) => {
  ${words}
});
`;
const good = handler("const { data } = event.object;\n  return data;");
const wrong = handler("return event.object.dta;");

const files = (code: string) => ({
  "functions/copy/function.yaml": manifest("copy"),
  "functions/copy/handler.ts": code,
});
const validate = (folder: string, ...words: string[]) => watchfire(["validate", ...words], {}, folder);

test("a handler's wrong type is a fault with its place, by the project's own TypeScript and settings", async () => {
  const folder = typedProject({
    ...files(wrong),
    "functions/other/function.yaml": manifest("other"),
    "functions/other/handler.ts": good,
    "test/copy.test.ts": "const a: number = 'not a handler';\nexport default a;\n",
  });
  const { stdout, stderr, status } = await validate(folder);
  expect(stderr).toMatch(/^WF_TYPES_HANDLER functions\/copy\/handler\.ts:5:23: TS2551: Property 'dta' does not exist/m);
  expect(stderr).not.toContain("copy.test.ts");
  expect(stdout).toBe("1 valid, 1 fault\n");
  expect(status).toBe(1);
});

test("a handler whose types are right is valid, and what was not checked is said", async () => {
  const { stdout, stderr, status } = await validate(typedProject(files(good)));
  expect(stdout).toBe("1 valid, 0 faults\n");
  expect(stderr).toMatch(/^not checked: that a cluster serves the kinds and resources \(name one with --context or /m);
  expect(stderr).not.toContain("types");
  expect(status).toBe(0);
});

test.each([
  ["no TypeScript", {}, { typescript: false }, /^not checked: types, since no TypeScript is installed here/m],
  [
    "settings that leave the handler out",
    { "tsconfig.json": `{ "files": ["other.ts"] }`, "other.ts": "" },
    {},
    /^not checked: types of functions\/copy\/handler\.ts, since tsconfig\.json leaves it out$/m,
  ],
  [
    "settings that cannot be used",
    { "tsconfig.json": `{ "compilerOptions": { "target": "es3000" }, "files": ["other.ts"] }`, "other.ts": "" },
    {},
    /^not checked: types.*, since tsconfig\.json /m,
  ],
])("with %s, types are said not to be checked", async (_, more, options, said) => {
  const { stdout, stderr, status } = await validate(typedProject({ ...files(wrong), ...more }, options));
  expect(stderr).toMatch(said);
  expect(stdout).toBe("1 valid, 0 faults\n");
  expect(status).toBe(0);
});

test("a package that is not installed is the one fault of its file, with how to install it", async () => {
  const folder = typedProject({
    ...files(
      `import type { A } from "absent/deep";\nimport type { B } from "absent";\n${wrong.replace("dta", "dta as A | B")}`,
    ),
    "functions/other/function.yaml": manifest("other"),
    "functions/other/handler.ts": wrong,
  });
  const { stdout, stderr } = await validate(folder);
  const faults = stderr.split("\n").filter((line) => line.startsWith("WF_TYPES_HANDLER"));
  expect(faults.map((line) => /functions\/\w+\/handler\.ts:\d+/.exec(line)?.[0])).toEqual([
    "functions/copy/handler.ts:1",
    "functions/other/handler.ts:5",
  ]);
  expect(faults[0]).toMatch(/Cannot find module 'absent\/deep'.*npm install --save-dev absent$/);
  expect(faults[1]).not.toContain("npm install");
  expect(stdout).toBe("0 valid, 2 faults\n");
});

test("a missing function.d.ts is a fault with the command that writes it", async () => {
  const { stderr } = await validate(typedProject(files(`import type { Handler } from "./function.d.ts";\n${wrong}`)));
  expect(stderr).toMatch(/handler\.ts:1:\d+: TS2307: .*function\.d\.ts.*; `watchfire types` writes it/);
});

test("what could not be built is told of once, not by the compiler again", async () => {
  const { stdout, stderr } = await validate(typedProject(files(`import "./none.ts";\n${wrong}`)));
  expect(stderr).toMatch(/^WF_BUNDLE_UNRESOLVED /m);
  expect(stdout).toBe("0 valid, 1 fault\n");
});

test("a compiler that lies in the functions folder is never run", async () => {
  const folder = typedProject(files(good), { typescript: false });
  const own = join(folder, "functions/node_modules/typescript");
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "package.json"), `{ "bin": { "tsc": "tsc.js" } }`);
  writeFileSync(join(own, "tsc.js"), `require("node:fs").writeFileSync(${JSON.stringify(join(folder, "ran"))}, "");`);
  const { stderr } = await watchfire(["validate", "--functions", "."], {}, join(folder, "functions"));
  expect(stderr).toContain("no TypeScript is installed here");
  expect(existsSync(join(folder, "ran"))).toBe(false);
});
