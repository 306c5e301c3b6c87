import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { BuilderProcess } from "../../runtime/bundle/builder-process.ts";
import { Builders } from "../../runtime/bundle/builders.ts";
import { buildLimit } from "../../runtime/bundle/limits.ts";
import { readProject } from "../../runtime/bundle/project.ts";
import { folderOf } from "../tools/folder.ts";

/** Contained in every file from which no function may be built. */
const secret = "treasure-7f3a";

/** A project with this text in `functions/f/handler.ts`, files with secrets around it, and further files. */
function projectOf(handler: string, files: Record<string, string> = {}): string {
  return folderOf({
    "functions/f/handler.ts": handler,
    "secrets/token": secret,
    "secrets/token.json": `{ "token": "${secret}" }`,
    "secrets/token.txt": secret,
    "secrets/token.ts": `${secret} is no code at all;`,
    "secrets/good.ts": `export default "${secret}";`,
    "secrets/map.map": JSON.stringify({ version: 3, sources: ["token"], mappings: "AAAA", names: [secret] }),
    "secrets/package.json": `{ "name": "${secret}", "main": "./good.ts", ${secret} }`,
    "functions/.env": secret,
    "functions/.hidden/token.txt": secret,
    ...files,
  });
}

/** Builds `functions/f/handler.ts`. Returns all messages of the failure, or all output of the build. */
async function build(project: string, handler = "f/handler.ts"): Promise<{ text: string; error?: WatchfireError }> {
  const folder = join(project, "functions");
  const builders = new Builders({ folder, clock: systemClock });
  onTestFinished(() => builders.close());
  try {
    const { script, sourceMap, inputs } = await builders.bundle({ handler: join(folder, handler) });
    return { text: `${script}\n${sourceMap}\n${inputs.join("\n")}` };
  } catch (error) {
    if (!(error instanceof WatchfireError)) throw error;
    return { text: error.faults.map(({ message }) => message).join("\n"), error };
  }
}

/** Imports of files outside of the folder. */
const imports: readonly (readonly [way: string, code: string])[] = [
  ["a text by its attribute", `import t from "../../secrets/token" with { type: "text" };`],
  ["bytes by the attribute", `import t from "../../secrets/token" with { type: "bytes" };`],
  ["JSON", `import t from "../../secrets/token.json";`],
  ["a text file", `import t from "../../secrets/token.txt";`],
  ["code", `import t from "../../secrets/good.ts";`],
  ["what is no code, whose first token a parser would tell", `import t from "../../secrets/token.ts";`],
  ["a folder, whose package.json a parser would tell of", `import t from "../../secrets";`],
  ["require", `const t = require("../../secrets/token.json");`],
  ["import()", `const t = import("../../secrets/good.ts");`],
  ["export from", `export * from "../../secrets/good.ts";`],
  ["an absolute path", `import t from "SECRETS/token.txt";`],
  ["a file: URL", `import t from "file://SECRETS/token.txt";`],
  ["the environment of the process that builds", `import t from "/proc/self/environ" with { type: "text" };`],
  ["the environment of its parent", `import t from "/proc/${process.pid}/environ" with { type: "text" };`],
  ["its own descriptors", `import t from "/proc/self/fd/0" with { type: "text" };`],
  ["a pod's token", `import t from "/var/run/secrets/kubernetes.io/serviceaccount/token" with { type: "text" };`],
  ["a hidden file of the folder", `import t from "../.env" with { type: "text" };`],
  ["a hidden folder", `import t from "../.hidden/token.txt";`],
];

describe("a build refuses files outside, at the place of the import and without a byte of it:", () => {
  it.each(imports)("%s", async (_, code) => {
    const project = projectOf("");
    const text = `\n  ${code}\nexport default () => t;\n`.replaceAll("SECRETS", join(project, "secrets"));
    writeFileSync(join(project, "functions/f/handler.ts"), text);
    const { text: said, error } = await build(project);
    expect(said).not.toContain(secret);
    const fault = error?.faults.find(({ detail: { place } }) => place?.line === 2);
    const [, hidden] = /"\.\.\/(\.\w[^"]*)"/.exec(code) ?? [];
    expect(fault?.code).toBe(
      code.includes("file:") ? "WF_BUNDLE_UNRESOLVED" : hidden ? "WF_BUNDLE_HIDDEN" : "WF_BUNDLE_OUTSIDE",
    );
    if (hidden) expect(said).toContain(`it is ${hidden}, and no function is built from what a leading dot hides`);
    expect(fault?.detail.place).toMatchObject({ file: join(project, "functions/f/handler.ts"), line: 2 });
    expect(fault?.detail.place?.column).toBeGreaterThan(2);
  });

  it.each([
    ["a linked file", "f/linked.txt", "../../secrets/token.txt", `import t from "./linked.txt";`],
    ["a file in a linked folder", "f/linked", "../../secrets", `import t from "./linked/token.txt";`],
    ["a link to a link", "f/linked.ts", "../other", `import t from "./linked.ts";`],
    ["a linked package", "node_modules/evil", "../../secrets", `import t from "evil/good.ts";`],
    ["a package's linked file", "node_modules/mild/index.ts", "../../../secrets/good.ts", `import t from "mild";`],
    ["a package's linked package.json", "node_modules/mild/package.json", "../../../secrets/package.json", `import t from "mild";`],
  ])("%s", async (_, link, target, code) => {
    const project = projectOf(`\n${code}\nexport default () => t;\n`);
    const at = join(project, "functions", link);
    mkdirSync(dirname(at), { recursive: true });
    symlinkSync(target, at);
    symlinkSync("../secrets/good.ts", join(project, "functions/other"));
    const { text, error } = await build(project);
    expect(text).not.toContain(secret);
    expect(error?.code).toBe("WF_BUNDLE_OUTSIDE");
    expect(error?.detail.place).toMatchObject({ file: join(project, "functions/f/handler.ts"), line: 2 });
  }); // biome-ignore format: a table

  it.each([
    ["main", `{ "main": "../../../secrets/good.ts" }`],
    ["module", `{ "module": "../../../secrets/good.ts" }`],
    ["browser", `{ "browser": "../../../secrets/good.ts" }`],
    ["a mapped browser", `{ "main": "./a.js", "browser": { "./a.js": "../../../secrets/good.ts" } }`],
    ["exports", `{ "exports": "../../../secrets/good.ts" }`],
    ["a pattern of exports", `{ "exports": { ".": "./../../../secrets/good.ts" } }`],
  ])("what a package's %s leads to", async (_, packageJson) => {
    const project = projectOf(`import t from "mild";\nexport default () => t;\n`, {
      "functions/node_modules/mild/package.json": packageJson,
    });
    const { text, error } = await build(project);
    expect(text).not.toContain(secret);
    expect(error?.code).toMatch(/^WF_BUNDLE_(?:OUTSIDE|UNRESOLVED)$/);
  });

  it("a hidden file, by the name that a link in plain sight leads to", async () => {
    const project = projectOf(`import t from "../plain/token.txt";\nexport default () => t;\n`);
    symlinkSync(".hidden", join(project, "functions/plain"));
    const { text, error } = await build(project);
    expect(text).not.toContain(secret);
    expect(error?.code).toBe("WF_BUNDLE_HIDDEN");
    expect(text).toContain("it is .hidden/token.txt, and");
  });

  it("a handler that is a link, and one that its manifest names outside", async () => {
    const project = projectOf("");
    symlinkSync("../../secrets/good.ts", join(project, "functions/f/link.ts"));
    for (const handler of ["f/link.ts", "../secrets/good.ts", "../secrets/token"]) {
      const { text, error } = await build(project, handler);
      expect(text).not.toContain(secret);
      expect(error?.code).toBe("WF_BUNDLE_OUTSIDE");
      expect(error?.detail.place?.file).toBe(join(project, "functions", handler));
    }
  });
});

describe("a build takes nothing of what lies outside", () => {
  it.each([
    ["a source map by its path", "//# sourceMappingURL=../../secrets/map.map"],
    ["a source map by its URL", "//# sourceMappingURL=file://SECRETS/map.map"],
    ["a source map in a comment of the old form", "//@ sourceMappingURL=file://SECRETS/map.map"],
    ["a source map in a block", "/*# sourceMappingURL=file://SECRETS/map.map */"],
    ["the sources of a map that is given whole", "//# sourceMappingURL=data:application/json;base64,MAP"],
    ["a URL beside the module", `new URL("file://SECRETS/token.txt");`],
    ["a reference", `/// <reference path="../../secrets/token.ts" />`],
  ])("through %s", async (_, line) => {
    const project = projectOf("");
    const secrets = join(project, "secrets");
    const map = { version: 3, sources: [`file://${secrets}/token.txt`], mappings: "AAAA", names: [] };
    const text = line.replace("SECRETS", secrets).replace("MAP", Buffer.from(JSON.stringify(map)).toString("base64"));
    writeFileSync(join(project, "functions/f/handler.ts"), `export default () => 1;\n${text}\n`);
    const { text: made, error } = await build(project);
    expect(error).toBeUndefined();
    expect(made).not.toContain(secret);
    expect(made.match(/"sources":\[[^\]]*\]/)?.[0]).not.toContain("secrets");
  });

  it("where a name is put together: neither folder is looked through", async () => {
    for (const name of ["'../../secrets/' + x", "'./' + x + '.ts'", "'../' + x", "'/etc/' + x"]) {
      const { text, error } = await build(projectOf(`\nexport default (x) => import(${name});\n`));
      expect(error?.code).toBe("WF_BUNDLE_DYNAMIC_IMPORT");
      expect(error?.detail.place).toMatchObject({ line: 2 });
      expect(text).not.toMatch(/token|secret.*\.ts/);
    }
  });

  it("of a tsconfig that extends another, or of a package's that does", async () => {
    const extending = `{ "extends": "../../secrets/token.json", "compilerOptions": { "paths": { "x": ["../../secrets/good.ts"] } } }`;
    const project = projectOf(`import "x";\nexport default () => 1;\n`, { "functions/f/tsconfig.json": extending });
    const { text, error } = await build(project);
    expect(error?.code).toBe("WF_BUNDLE_UNRESOLVED");
    expect(text).not.toContain(secret);
  });
});

describe("what a build may read", () => {
  it("is all of the functions folder, wherever a link to that folder stands", async () => {
    const project = projectOf(`import { two } from "../shared/two.ts";\nexport default () => two;\n`, {
      "functions/shared/two.ts": "export const two = 2;",
    });
    const linked = folderOf({});
    symlinkSync(join(project, "functions"), join(linked, "functions"));
    const { text, error } = await build(linked);
    expect(error).toBeUndefined();
    // The path in the form that the import names, not its real location.
    expect(text).toContain(join(linked, "functions/shared/two.ts"));
    expect(text).not.toContain(project);
  });

  it("is a mounted ConfigMap, which is links all the way down", async () => {
    const project = folderOf({ "functions/..2026_01/handler.ts": "export default () => 'mounted';" });
    symlinkSync("..2026_01", join(project, "functions/..data"));
    symlinkSync("..data/handler.ts", join(project, "functions/handler.ts"));
    expect((await build(project, "handler.ts")).text).toContain("mounted");
  });

  it("is a package that is installed above, and one that is linked there and says that it is it", async () => {
    const imports = `import a from "a";\nimport b from "@own/b";\nimport c from "@own/b-c";\n`;
    const project = projectOf(`${imports}export default () => [a, b, c];\n`, {
      "node_modules/a/package.json": `{ "name": "a" }`,
      "node_modules/a/index.js": "module.exports = 'installed';",
      "lib/b/package.json": `{ "name": "@own/b", "main": "b.ts" }`,
      "lib/b/b.ts": "import own from 'own';\nexport default ['linked', own];",
      "lib/b/node_modules/own/package.json": `{ "name": "own" }`,
      "lib/b/node_modules/own/index.js": "module.exports = 'its own';",
      // A folder whose name begins with another folder's name.
      "lib/b-c/package.json": `{ "name": "@own/b-c", "main": "." }`,
      "lib/b-c/index.ts": "export default 'linked too';",
    });
    mkdirSync(join(project, "node_modules/@own"));
    for (const name of ["b", "b-c"]) symlinkSync(`../../lib/${name}`, join(project, "node_modules/@own", name));
    const { text } = await build(project);
    for (const made of ["installed", "linked", "its own", "linked too"]) expect(text).toContain(`"${made}"`);
  });

  it("is a package that is installed beside the runtime, whose SDK may be read first", async () => {
    const project = projectOf(
      `import a from "a";\nimport sdk from "@watchfire/sdk";\nexport default () => [a, sdk];\n`,
      {
        "node_modules/a/package.json": `{ "name": "a" }`,
        "node_modules/a/index.js": "module.exports = 'installed';",
        "node_modules/@watchfire/sdk/package.json": `{ "name": "@watchfire/sdk" }`,
        "node_modules/@watchfire/sdk/index.js": "module.exports = 'the SDK';",
      },
    );
    const folder = join(project, "functions");
    const ownFolder = join(project, "node_modules/@watchfire/sdk");
    const { roots, ...rest } = readProject(folder);
    const sdk = { path: ownFolder, label: "@watchfire/sdk", hidesDotNames: true };
    const installed = { ...rest, ownFolder, roots: [sdk, ...roots.slice(1)] };
    const builder = new BuilderProcess(installed, systemClock);
    onTestFinished(() => builder.close());
    const { script } = await builder.bundle(join(folder, "f/handler.ts"));
    expect(script).toContain('"installed"');
    expect(script).toContain('"the SDK"');
  });

  it("is no folder that a link beside the packages leads to under another name", async () => {
    const project = projectOf(`import t from "other/token.txt";\nexport default () => t;\n`, {
      "node_modules/.package-lock.json": "{}",
    });
    symlinkSync("../secrets", join(project, "node_modules/other"));
    const { text, error } = await build(project);
    expect(error?.code).toBe("WF_BUNDLE_OUTSIDE");
    expect(text).not.toContain(secret);
  });
});

test("a builder's processes have nothing of the environment, and may start none and write nothing", async () => {
  const project = projectOf("export default () => 1;");
  const folder = join(project, "functions");
  const builders = new Builders({ folder, clock: systemClock });
  onTestFinished(() => builders.close());
  await builders.bundle({ handler: join(folder, "f/handler.ts") });
  const children = execFileSync("ps", ["--ppid", String(process.pid), "-o", "pid=,args=", "ww"], { encoding: "utf8" });
  const own = children.split("\n").filter((line) => line.includes(folder) || /--service=/.test(line));
  expect(own.some((line) => line.includes("watchfire builder"))).toBe(true);
  for (const line of own.filter((each) => each.includes("watchfire builder"))) {
    const pid = line.trim().split(" ")[0];
    expect(line).toContain("--permission");
    expect(line).not.toMatch(/--allow-(?:child-process|fs-write|worker|addons|net|wasi)/);
    const environment = execFileSync("cat", [`/proc/${pid}/environ`], { encoding: "utf8" });
    expect(environment.split("\0").filter(Boolean).map((each) => each.split("=")[0])).toEqual(["TZ", "ESBUILD_BINARY_PATH"]); // biome-ignore format: one claim
  }
  // The tests' own esbuild runs in a folder that exists.
  const pids = own.filter((line) => line.includes("--service=")).map((line) => line.trim().split(" ")[0]);
  const builds = pids.filter((pid) => readlinkSync(`/proc/${pid}/cwd`).endsWith("(deleted)"));
  expect(builds.length).toBeGreaterThan(0);
  for (const pid of builds) {
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
    expect(environment.map((each) => each.split("=")[0])).toEqual(["GOMAXPROCS", "GOGC", "GOMEMLIMIT"]);
    const cores = Number(environment[0]?.split("=")[1]) * buildLimit;
    expect(cores).toBeLessThanOrEqual(Math.max(buildLimit, availableParallelism()));
  }
});
