import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { bundleFunction } from "../tools/bundle.ts";
import { fixtureForTest } from "./fixture.ts";

const handler = (body: string) => `export default (event, ctx) => {\n${body}\n};`;
/** Texts that look like stack frames with positions that exist in no file. */
const nowhere = ["app:///a:0:0", "app:///a:1:0", "app:///a:0:1", `app:///a:${"9".repeat(400)}:1`];
const limits = { memoryBytes: 32 * 2 ** 20, cpuPerEventMs: 500 };

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

  it("a line of log that had to wait for its stack's places", async () => {
    const fixture = fixtureForTest({ output: { log: full, metric: full } });
    await fixture.load("f", handler("ctx.log.info(new Error().stack);"));
    const error = { code: "WF_SANDBOX_UNREADABLE", message: expect.stringContaining("the disk is full") };
    expect(await fixture.run("f")).toMatchObject({ type: "failed", error });
    expect(fixture.deaths).toEqual([]);
  });
});

it("an error, a limit or a load whose source map cannot be read is told without the author's places", async () => {
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
  const stacks: string[] = [];
  for (const name of ["throws", "loops", "throws"]) {
    const outcome = await fixture.run(name);
    stacks.push(outcome.type === "failed" ? outcome.error.stack : outcome.type);
  }
  const why = /app:\/\/\/\w+\/handler\.js:\d+:\d+.*\n {4}\(positions of the bundle: its source map cannot be read\)$/;
  for (const text of stacks) expect(text).toMatch(why);
  await expect(load("cannot", `throw new Error("no"); export default () => {};`)).rejects.toThrow(
    /WF_SANDBOX_LOAD: .*no/,
  );
  expect(fixture.deaths).toEqual([]);
});

it("lines are written in their order, and before their event's end, where one waits for its stack's places", async () => {
  const fixture = fixtureForTest();
  const code = `ctx.log.info("first"); ctx.log.warn(new Error("second").stack);
    ctx.log.info("third", { error: new Error("inner").stack }); ctx.log.info("fourth");`;
  await fixture.load("f", handler(code));
  expect(await fixture.run("f")).toMatchObject({ type: "ok" });
  expect(fixture.logs.map(({ message }) => message.split("\n")[0])).toEqual([
    "first",
    "Error: second",
    "third",
    "fourth",
  ]);
  expect(fixture.logs[1]?.message).toMatch(/f\.ts:2:\d+/);
  expect(fixture.logs[2]?.fields).toEqual({ error: expect.stringMatching(/f\.ts:3:\d+/) });
});
