import { describe, expect, it } from "vitest";
import { isWhole } from "../../runtime/sandbox/executor/outbox.ts";
import { fixtureForTest } from "./fixture.ts";

/** The lines that one event of a handler with this body logs. */
async function logsOf(body: string) {
  const fixture = fixtureForTest();
  await fixture.load("f", `export default (event, ctx) => {\n${body}\n};`);
  const outcome = await fixture.run("f");
  expect(outcome).toMatchObject({ type: "ok" });
  return fixture.logs;
}

/** Matches the bundle's positions and the runtime's frames, which must not appear. */
const inside = /app:\/\/\/|watchfire:guest|<anonymous>/;

describe("an error that a handler logs", () => {
  it.each([
    ["as the message", `ctx.log.error(new Error("no"));`],
    ["by its stack", `ctx.log.error(new Error("no").stack);`],
    ["on the console", `console.error("it says", new Error("no"));`],
  ])("%s has its places in the author's file, and none of ours", async (_, body) => {
    const [line] = await logsOf(body);
    expect(line?.message).toMatch(/Error: no\n {4}at .*\(?[^ ]*f\.ts:2:\d+\)?$/);
    expect(line?.message).not.toMatch(inside);
  });

  it("among the fields is told by name, message, stack, cause and what it carries, however deep it lies", async () => {
    const [line] = await logsOf(`
      const cause = new RangeError("deep");
      const err = Object.assign(new TypeError("no", { cause }), { status: 404 });
      err.self = err;
      ctx.log.error("failed", { err, list: [{ cause }] });`);
    const fields = line?.fields as { err: { stack: string }; list: unknown[] };
    expect(fields.err).toMatchObject({
      name: "TypeError",
      message: "no",
      status: 404,
      self: "[circular]",
      cause: { name: "RangeError", message: "deep" },
    });
    expect(fields.err.stack).toMatch(/^TypeError: no\n.*f\.ts:4:\d+/);
    expect(fields.list).toMatchObject([{ cause: { message: "deep" } }]);
    expect(JSON.stringify(fields)).not.toMatch(inside);
  });
});

it("an error's message keeps its lines, also one that looks like a frame, and the stack below it has its places", async () => {
  const fixture = fixtureForTest();
  const message = "first\\n    at the third stroke\\nlast";
  await fixture.load("f", `export default () => { throw new Error("${message}"); };`);
  const outcome = await fixture.run("f");
  const { stack } = outcome.type === "failed" ? outcome.error : expect.unreachable();
  expect(stack).toMatch(/^Error: first\n {4}at the third stroke\nlast\n {4}at .*f\.ts:1:\d+/);
  expect(stack).not.toMatch(inside);
});

describe("a value that JSON has no form for", () => {
  it("is replaced alone", async () => {
    const [line] = await logsOf(`
      const ring = { at: 1 };
      ring.ring = ring;
      const twice = { n: 1 };
      ctx.log.info("counts", { good: 1, big: 10n, bigger: 2n ** 20_000n, ring, call: () => 1, mark: Symbol("s"), twice: [twice, twice] });`);
    expect(line?.fields).toEqual({
      good: 1,
      big: "10",
      bigger: "a large BigInt",
      ring: { at: 1, ring: "[circular]" },
      call: "[function]",
      mark: "Symbol(s)",
      twice: [{ n: 1 }, { n: 1 }],
    });
  });

  it("is replaced alone where it throws when it is looked at", async () => {
    const [line] = await logsOf(`
      const trap = new Proxy({}, { ownKeys() { throw new Error("no"); }, getPrototypeOf() { throw new Error("no"); } });
      let deep = {};
      for (let at = 0; at < 1e5; at++) deep = { deep };
      ctx.log.info("seen", { good: 1, trap, get own() { throw 1; }, made: { toJSON() { throw 1; } }, deep, last: 2 });`);
    const none = "[unprintable]";
    expect(line?.fields).toMatchObject({ good: 1, trap: none, own: none, made: none, last: 2 });
    expect(JSON.stringify(line?.fields)).toContain('{"deep":"[deep]"}');
  });

  it("is replaced whatever the handler did to the language before", async () => {
    const [line] = await logsOf(`
      for (const key of ["0", "1", "cause", "name"]) Object.defineProperty(Object.prototype, key, { set() { throw 1; }, get() {} });
      JSON.stringify = Object.keys = () => { throw 1; };
      Symbol.prototype.toString = Array.prototype.includes = undefined;
      ctx.log.info("seen", { big: 1n, mark: Symbol("s"), err: new Error("no") });`);
    expect(line?.fields).toMatchObject({ big: "1", mark: "Symbol(s)", err: { name: "Error", message: "no" } });
  });
});

it.each([
  ["CPU time", { cpuMs: 200 }, {}, "WF_SANDBOX_CPU_BUDGET"],
  ["deadline", { cpuMs: 5000 }, { timeoutMs: 300 }, "WF_SANDBOX_DEADLINE"],
])(
  "what a handler wrote and counted before a loop that its %s ends is told, with the loop's place",
  async (_, limits, over, code) => {
    const fixture = fixtureForTest();
    const body = `ctx.log.info("before the loop", { n: 1 }); ctx.metrics.increment("seen"); for (;;);`;
    await fixture.load("f", `export default (event, ctx) => { ${body} };`, limits);
    const placed: string[] = [];
    for (let event = 1; event <= 5; event++) {
      const outcome = await fixture.run("f", over);
      expect(outcome).toMatchObject({ type: "failed", error: { code } });
      // V8's timer is late if other processes use both cores; then neither is known.
      if (outcome.type === "failed" && /^ +at .*f\.ts:1:/m.test(outcome.error.stack)) placed.push(`f-${event}`);
    }
    expect(placed.length).toBeGreaterThan(0);
    expect(fixture.logs.map(({ id }) => id)).toEqual(placed);
    expect(fixture.logs[0]).toMatchObject({ level: "info", message: "before the loop", fields: { n: 1 } });
    expect(fixture.metrics.map(({ name }) => name)).toEqual(placed.map(() => "seen"));
    expect(fixture.deaths).toEqual([]);
  },
);

it("what was queued behind a loop that V8 ended holds up nobody: the event is charged with the loop's place, and its neighbour runs", async () => {
  const fixture = fixtureForTest();
  const body = `ctx.log.info("before the loop"); Promise.resolve().then(() => { for (;;); }); for (;;);`;
  await fixture.load("f", `export default (event, ctx) => { ${body} };`, { cpuMs: 100 });
  await fixture.load("g", "export default () => {};");
  let placed = 0;
  for (let event = 1; event <= 5; event++) {
    const [looped, neighbour] = await Promise.all([fixture.run("f"), fixture.run("g")]);
    expect(looped).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_CPU_BUDGET" } });
    if (looped.type === "failed" && /^ +at .*f\.ts:1:/m.test(looped.error.stack)) placed++;
    expect(neighbour).toMatchObject({ type: "ok" });
  }
  expect(placed).toBeGreaterThan(0);
  expect(fixture.deaths).toEqual([]);
});

it("an outbox whose last line V8 ended amid its writing is told to nobody", () => {
  const head = `[[],[],[[1,"info",2,0],[1,"info",3,7]],[[1,"increment",1,1,0]],-1,[],0]\n`;
  expect(isWhole(`${head}hidot{"a":1}m`)).toBe(true);
  expect(isWhole(`${head}hidot{"a":1}`)).toBe(false);
  expect(isWhole(`${head}hidot{"a":1}mm`)).toBe(false);
});

it("what is thrown and has no text, such as a proxy, is told of as that", async () => {
  const fixture = fixtureForTest();
  await fixture.load("f", "export default () => { throw new Proxy({}, { get() { throw 1; } }); };");
  expect(await fixture.run("f")).toMatchObject({
    type: "failed",
    error: { message: "an object that is not an Error" },
  });
});
