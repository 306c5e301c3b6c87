import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { entrySource } from "../../runtime/bundle/source-path.ts";
import { limitError } from "../../runtime/sandbox/host/failure.ts";
import { StackMapper } from "../../runtime/sandbox/host/stack.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { fixtureForTest } from "./fixture.ts";

const handler = (body: string) => `export default (event, ctx) => {\n${body}\n};`;
/** Reads like a frame, of a place that no file has. */
const nowhere = ["app:///a:0:0", "app:///a:1:0", "app:///a:0:1", `app:///a:${"9".repeat(400)}:1`];
const limits = { memoryBytes: 32 * 2 ** 20, cpuPerEventMs: 500 };

it("a handler's beginning is looked for once, however often it breaks a limit and however long its sources are", () => {
  const sourcesContent = [`${"const a = 1;\n".repeat(400_000)}export default () => {};`, ""];
  const sources = ["handler.ts", entrySource];
  const sourceMap = JSON.stringify({ version: 3, sources, sourcesContent, names: [], mappings: "AAAA" });
  const mapper = new StackMapper({ sourceMap });
  const said = { name: "", message: "", stack: "" };
  const fail = () => limitError("cpu", said, mapper, limits, 1000).stack;
  expect(fail()).toContain("begins at handler.ts:400001:1");
  const before = process.cpuUsage();
  for (let count = 0; count < 64; count++) fail();
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(100);
});

describe("whatever a handler says, its attempt ends once and its executor lives on:", () => {
  it.each([
    `{ a: { toString: 1, valueOf: 1 } }`,
    `{ a: [[{ toString: 1 }]] }`,
    `{ a: null, b: 1, c: true, d: 2n }`,
    `{ __proto__: null, ["__proto__"]: { a: 1 } }`,
    `["a"]`,
  ])("a metric with the labels %s", async (labels) => {
    const fixture = fixtureForTest();
    await fixture.load("f", handler(`ctx.metrics.increment("x", 1, ${labels});`));
    expect(await fixture.run("f")).toMatchObject({ type: "ok" });
    expect(fixture.metrics.flatMap((one) => Object.values(one.labels)).every((text) => typeof text === "string")).toBe(
      true,
    );
    expect(fixture.deaths).toEqual([]);
  });

  it.each(nowhere)("a line of log, a field and an error with the place %s", async (place) => {
    const fixture = fixtureForTest();
    const text = JSON.stringify(`no\n    at f (${place})\nlast`);
    await fixture.load("f", handler(`ctx.log.info(${text}, { text: ${text} }); throw new Error(${text});`));
    const outcome = await fixture.run("f");
    expect(outcome).toMatchObject({ type: "failed", error: { name: "Error" } });
    expect(outcome).toMatchObject({ error: { stack: expect.stringMatching(/last\n.*f\.ts:2:\d+/) } });
    expect(fixture.logs).toMatchObject([{ message: expect.stringMatching(/^no\n(.*\n)?last$/) }]);
    expect(fixture.deaths).toEqual([]);
  });

  it.each(nowhere)("a module that throws an error with the place %s cannot be loaded", async (place) => {
    const fixture = fixtureForTest();
    const stack = JSON.stringify(`Error: bad\n    at f (${place})`);
    const loading = fixture.load(
      "f",
      `const e = new Error("bad"); e.stack = ${stack}; throw e; export default () => {};`,
    );
    await expect(loading).rejects.toThrow(/WF_SANDBOX_LOAD .*f\.ts:1:\d+.*bad/);
    expect(fixture.deaths).toEqual([]);
  });

  it("a module's error may not steer a terminal", async () => {
    const loading = fixtureForTest().load("f", `throw new Error("a\\u001b[31mb"); export default () => {};`);
    await expect(loading).rejects.toThrow(/a\\u001b\[31mb/);
  });
});

describe("a fault of the parent's own in reading what a handler says is that handler's failed attempt:", () => {
  const full = () => {
    throw new Error("the disk is full");
  };
  it.each([
    ["a line of log", `ctx.log.info("a");`],
    ["a metric", `ctx.metrics.increment("a");`],
    ["one of many lines", `for (let i = 0; i < 20; i++) ctx.log.info("a");`],
  ])("%s", async (_, body) => {
    const fixture = fixtureForTest({ output: { log: full, metric: full } });
    await fixture.load("bad", handler(body));
    await fixture.load("good", "export default () => new Promise((resolve) => setTimeout(resolve, 100));");
    const good = fixture.run("good");
    const error = { code: "WF_SANDBOX_UNREADABLE", message: expect.stringContaining("the disk is full") };
    expect(await fixture.run("bad")).toMatchObject({ type: "failed", error });
    expect(await good).toMatchObject({ type: "ok" });
    expect(await fixture.run("good")).toMatchObject({ type: "ok" });
    expect(fixture.deaths).toEqual([]);
  });

  it("a rejection after the handler's return, which no attempt is left for, is dropped", async () => {
    const fixture = fixtureForTest({ output: { log: full, metric: full } });
    await fixture.load(
      "f",
      handler(
        `if (event.trigger === "waits") return new Promise((resolve) => setTimeout(resolve, 400));
        setTimeout(() => { throw new Error("late"); }, 100);`,
      ),
    );
    expect(await fixture.run("f")).toMatchObject({ type: "ok" });
    expect(await fixture.run("f", { trigger: "waits" })).toMatchObject({ type: "ok" });
    expect(fixture.deaths).toEqual([]);
  });

  it("an error, a limit or a load whose places cannot be found", async () => {
    const fixture = fixtureForTest();
    const folder = mkdtempSync(join(tmpdir(), "watchfire-words-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const load = async (name: string, code: string) => {
      const file = join(folder, `${name}.ts`);
      writeFileSync(file, code);
      const bundle = await bundleFunction({ name, handler: file });
      await fixture.sandbox.load({ name, resources: limits }, { ...bundle, sourceMap: "no map" }, {});
    };
    await load("throws", `export default () => { throw new Error("no"); };`);
    await load("loops", `export default () => { for (;;); };`);
    for (const name of ["throws", "loops", "throws"]) {
      expect(await fixture.run(name)).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_UNREADABLE" } });
    }
    await expect(load("cannot", `throw new Error("no"); export default () => {};`)).rejects.toThrow("WF_SANDBOX_LOAD");
    expect(fixture.deaths).toEqual([]);
  });
});
