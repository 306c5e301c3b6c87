import { createHash } from "node:crypto";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import { describe, expect, it } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { acceptHandler } from "../../runtime/bundle/script-bundle.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { folderOf } from "../tools/folder.ts";

const bundleOf = (files: Record<string, string>, handler = "handler.ts") => {
  const folder = folderOf(files);
  return bundleFunction({ name: "f", handler: join(folder, handler) });
};

/** Runs a bundle's script as the guest does, and returns its handler. */
function handlerOf(script: string): (...args: unknown[]) => unknown {
  let handler: unknown;
  const result = runInNewContext(script, { [acceptHandler]: (value: unknown) => (handler = value) });
  expect(result).toBeUndefined();
  return handler as (...args: unknown[]) => unknown;
}

async function refusal(files: Record<string, string>, handler?: string): Promise<WatchfireError> {
  const failure = await bundleOf(files, handler).then(
    () => expect.unreachable("the build was not refused"),
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(WatchfireError);
  return failure as WatchfireError;
}

describe("bundling", () => {
  it("makes one script of a TypeScript handler and what it imports", async () => {
    const { script, hash, inputs } = await bundleOf({
      "handler.ts": `import { twice } from "./twice.ts"; export default (n: number): number => twice(n);`,
      "twice.ts": "export const twice = (n: number): number => 2 * n;",
    });
    expect(handlerOf(script)(21)).toBe(42);
    expect(hash).toBe(createHash("sha256").update(script).digest("hex"));
    expect(inputs.map((file) => file.split("/").at(-1)).sort()).toEqual(["handler.ts", "twice.ts"]);
  });

  it("takes JavaScript handlers, and packages installed beside them", async () => {
    const { script } = await bundleOf(
      {
        "handler.js": `import three from "three-of-it"; export default () => three;`,
        "node_modules/three-of-it/package.json": `{ "name": "three-of-it", "main": "main.js" }`,
        "node_modules/three-of-it/main.js": "module.exports = typeof process === 'undefined' ? 3 : process.pid;",
      },
      "handler.js",
    );
    expect(handlerOf(script)()).toBe(3);
  });

  it("makes a source map with the text of the author's files, and of no package's, which it names all the same", async () => {
    const { sourceMap, sourceMapLength } = await bundleOf({
      "handler.ts": `import three from "three-of-it"; export default () => three;`,
      "node_modules/three-of-it/package.json": `{ "name": "three-of-it", "main": "main.js" }`,
      "node_modules/three-of-it/main.js": `module.exports = 3; // ${"long ".repeat(1000)}`,
    });
    const { sources, sourcesContent } = JSON.parse(sourceMap) as { sources: string[]; sourcesContent: string[] };
    const textOf = (name: string) => sourcesContent[sources.findIndex((source) => source.endsWith(name))];
    expect([textOf("/handler.ts"), textOf("/main.js")]).toEqual([expect.stringContaining("export default"), null]);
    expect(sourceMapLength).toBe(sourceMap.length);
    expect(sourceMapLength).toBeLessThan(2000);
  });

  it("finds the SDK where none is installed beside the functions", async () => {
    const { script } = await bundleOf({
      "handler.ts": `import { defineHandler, PermanentError } from "@watchfire/sdk";
        import type { V1Pod } from "@watchfire/sdk/kubernetes";
        export default defineHandler<V1Pod>(() => { throw new PermanentError("no"); });`,
    });
    expect(() => handlerOf(script)()).toThrow("no");
  });

  it("prefers the SDK that is installed beside the functions", async () => {
    const { script } = await bundleOf({
      "handler.ts": `import { version } from "@watchfire/sdk"; export default () => version;`,
      "node_modules/@watchfire/sdk/package.json": `{ "name": "@watchfire/sdk", "main": "main.js" }`,
      "node_modules/@watchfire/sdk/main.js": "export const version = 'theirs';",
    });
    expect(handlerOf(script)()).toBe("theirs");
  });

  it("keeps function names, and maps every position back to the author's file", async () => {
    const { script, sourceMap } = await bundleOf({
      "handler.ts": `interface Unused { a: string }\n\nexport default function greet() {\n  throw new Error("here");\n}\n`,
    });
    expect(handlerOf(script).name).toBe("greet");
    const lines = script.split("\n");
    const line = lines.findIndex((text) => text.includes(`"here"`));
    const position = originalPositionFor(new TraceMap(sourceMap), {
      line: line + 1,
      column: (lines[line] ?? "").indexOf("new Error"),
    });
    expect(position).toMatchObject({ line: 4, column: 8 });
    expect(position.source).toMatch(/\/handler\.ts$/);
  });

  it("says whether the handler uses oldObject", async () => {
    expect(await bundleOf({ "handler.ts": "export default (e) => e.oldObject;" })).toMatchObject({
      usesOldObject: true,
    });
    expect(await bundleOf({ "handler.ts": "export default (e) => e.object;" })).toMatchObject({ usesOldObject: false });
  });
});

describe("a build is refused, with the place and what to do,", () => {
  const inHandler = (text: string) => ({ "handler.ts": `\n  ${text}\nexport default () => {};\n` });
  const cases: [why: string, files: Record<string, string>, code: string, place: string, hint: RegExp][] = [
    ["for node:fs", inHandler(`import "node:fs";`), "NODE_BUILTIN", "handler.ts:2:10", /no file system/],
    ["for fs", inHandler(`import fs from "fs"; fs.x();`), "NODE_BUILTIN", "handler.ts:2:18", /no file system/],
    ["for a built-in by a name of Object.prototype", inHandler(`import "node:__proto__";`), "NODE_BUILTIN", "handler.ts:2:10", /ctx/],
    ["for an import attribute by a name of Object.prototype", { ...inHandler(`import "./a.txt" with { type: "constructor" };`), "a.txt": "" }, "UNRESOLVED", "handler.ts:2:10", /JSON/],
    ["for a native addon", inHandler(`import "./x.node";`), "NATIVE_ADDON", "handler.ts:2:10", /JavaScript only/],
    ["for an import by a computed name", inHandler(`import(String(Math.random()));`), "DYNAMIC_IMPORT", "handler.ts:2:3", /literal/],
    ["for a require by a computed name", inHandler(`require(String(Math.random()));`), "DYNAMIC_IMPORT", "handler.ts:2:3", /literal/],
    ["for process", inHandler("console.log(process.pid);"), "ABSENT_NAME", "handler.ts:2:15", /ctx\.env/],
    ["for Buffer", inHandler("console.log(Buffer.from('a'));"), "ABSENT_NAME", "handler.ts:2:15", /Uint8Array/],
    ["for __dirname", inHandler("console.log(__dirname);"), "ABSENT_NAME", "handler.ts:2:15", /import the file/],
    ["for WebAssembly", inHandler("new WebAssembly.Memory({ initial: 1 });"), "ABSENT_NAME", "handler.ts:2:7", /JavaScript/],
    ["for a global fetch", inHandler("fetch('https://a.example');"), "ABSENT_NAME", "handler.ts:2:3", /ctx\.fetch/],
    ["for SharedArrayBuffer", inHandler("console.log(new SharedArrayBuffer(1));"), "ABSENT_NAME", "handler.ts:2:19", /ArrayBuffer/],
    ["for Atomics", inHandler("console.log(Atomics);"), "ABSENT_NAME", "handler.ts:2:15", /plain reads/],
    ["for process as a member of globalThis", inHandler("console.log(globalThis.process.pid);"), "ABSENT_NAME", "handler.ts:2:15", /ctx\.env/],
    ["for a worker", inHandler("new Worker('x.js');"), "ABSENT_NAME", "handler.ts:2:7", /concurrency/],
    ["for import.meta.url", inHandler("console.log(import.meta.url);"), "ABSENT_NAME", "handler.ts:2:15", /a handler has no file/],
    ["for a top-level await", inHandler("await 3;"), "TOP_LEVEL_AWAIT", "handler.ts:2:3", /inside the handler/],
    ["for a kind of file that is no code", { ...inHandler(`import "./a.png";`), "a.png": "" }, "UNRESOLVED", "handler.ts:2:10", /JSON/],
    ["for a name that a file does not export", { ...inHandler(`import { a } from "./b.ts"; a();`), "b.ts": "export const c = 1;" }, "UNRESOLVED", "handler.ts:2:12", /export it/],
    ["for a file that is not there", inHandler(`import "./gone.ts";`), "UNRESOLVED", "handler.ts:2:10", /correct the path/],
    ["for a package that is not installed", inHandler(`import "left-pad/x";`), "UNRESOLVED", "handler.ts:2:10", /npm install --save-dev left-pad$/],
    ["for a client of HTTP that is not installed", inHandler(`import "axios";`), "UNRESOLVED", "handler.ts:2:10", /ctx\.fetch/],
    ["for broken syntax", inHandler("const = 3;"), "SYNTAX", "handler.ts:2:9", /fix the syntax/],
    ["for a missing default export", { "handler.ts": "export const a = 1;" }, "NO_HANDLER", "handler.ts:1:1", /export default/],
    ["for a handler that is not there", {}, "HANDLER_MISSING", "handler.ts", /spec\.handler/],
  ]; // biome-ignore format: a table
  it.each(cases)("%s", async (_, files, code, place, hint) => {
    const error = await refusal(files);
    expect(error.faults).toHaveLength(1);
    expect(error.code).toBe(`WF_BUNDLE_${code}`);
    const { file, line, column } = error.detail.place ?? { file: "" };
    expect([file.split("/").at(-1), line, column].filter((part) => part !== undefined).join(":")).toBe(place);
    expect(error.hint).toMatch(hint);
  });

  it("and for all that is wrong at once, each at its place", async () => {
    const error = await refusal({
      "handler.ts": `import { readFileSync } from "node:fs";
import "./gone.ts";
import { host } from "./host.ts";
const settings = JSON.parse(readFileSync("settings.json", "utf8"));
const more = await import(settings.more);
export default () => [process.env.A, globalThis.Buffer, import.meta.url, host, new Worker("w")];
`,
      "host.ts": `import { hostname } from "os";\nexport const host = hostname() + __dirname;\n`,
    });
    const said = error.faults.map(({ code, detail: { place } }) => [
      `${place?.file.split("/").at(-1)}:${place?.line}:${place?.column}`,
      code.replace("WF_BUNDLE_", ""),
    ]);
    expect(said).toEqual([
      ["handler.ts:1:30", "NODE_BUILTIN"],
      ["handler.ts:2:8", "UNRESOLVED"],
      ["handler.ts:5:14", "TOP_LEVEL_AWAIT"],
      ["handler.ts:5:20", "DYNAMIC_IMPORT"],
      ["handler.ts:6:23", "ABSENT_NAME"],
      ["handler.ts:6:38", "ABSENT_NAME"],
      ["handler.ts:6:57", "ABSENT_NAME"],
      ["handler.ts:6:84", "ABSENT_NAME"],
      ["host.ts:1:26", "NODE_BUILTIN"],
      ["host.ts:2:34", "ABSENT_NAME"],
    ]);
    expect(error.message).toContain("and 9 more, which `watchfire validate` lists");
    for (const { message } of error.faults) expect(message).not.toMatch(/iife|output format|esbuild/);
  });

  it("but not for a local name, a property, a string or a question that merely looks like an absent global", async () => {
    const { script } = await bundleOf({
      "handler.ts": `export default (process: { pid: number }) => {
        const Buffer = { from: (n: number) => n };
        return [Buffer.from(process.pid), { Atomics: "WebAssembly" }.Atomics, typeof WebAssembly === "undefined", typeof globalThis.process].join();
      };`,
    });
    expect(handlerOf(script)({ pid: 7 })).toMatch(/^7,WebAssembly/);
  });
});
