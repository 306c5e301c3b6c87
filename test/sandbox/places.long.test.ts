import { describe, expect, it } from "vitest";
import { fixtureForTest, type SandboxFixture } from "./fixture.ts";

const get = `ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "p" })`;

async function errorOf(fixture: SandboxFixture, over = {}) {
  for (;;) {
    const outcome = await fixture.run("f", over);
    if (outcome.type === "failed") return outcome.error;
    expect(outcome.type).toBe("interrupted");
  }
}

describe("an attempt that a limit ended", () => {
  it("at its deadline says which call it was waiting for, and where", async () => {
    const fixture = fixtureForTest();
    fixture.answer = () => new Promise(() => {});
    await fixture.load("f", `const a = 1;\nexport default async (event, ctx) => {\n  await ${get};\n};`);
    const error = await errorOf(fixture, { timeoutMs: 1000 });
    expect(error.code).toBe("WF_SANDBOX_DEADLINE");
    expect(error.message).toContain("was not done after 1000 ms; it was waiting for kube.get;");
    expect(error.stack).toMatch(/^\s+at .*f\.ts:3:18\)$/m);
  });

  it("at its deadline without a call says that no call held it up, and claims no place", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", "export default () => new Promise(() => {});");
    const error = await errorOf(fixture, { timeoutMs: 1000 });
    expect(error.message).toContain("was not done after 1000 ms; it was not waiting for a call;");
    expect(error.stack).toMatch(/\n {4}its place is not known; the handler begins at .*f\.ts:1:1$/);
    expect(error.stack).not.toMatch(/^\s+at /m);
  });

  it("by its memory claims no place that is not known", async () => {
    const fixture = fixtureForTest();
    const code = "\n\nexport default () => {\n  const all = [];\n  for (;;) all.push(new Array(1e5).fill(1.5));\n};";
    await fixture.load("f", code, { cpuMs: 20_000 });
    const error = await errorOf(fixture, { timeoutMs: 30_000 });
    expect(error.code).toBe("WF_SANDBOX_MEMORY");
    expect(error.stack).toMatch(/\n {4}its place is not known; the handler begins at .*f\.ts:3:1$/);
  });

  it.each([
    [`Promise.all(Array.from({ length: 70 }, () => ${get}))`, "65 calls would wait for an answer at once, and 64 may"],
    [
      `ctx.kube.update({ data: "x".repeat(1_700_000) })`,
      /kube\.update would send 1700\d\d\d characters, and a call may send 1600000/,
    ],
    [
      `Promise.all([1, 2].map(() => ctx.kube.update({ data: "x".repeat(1_200_000) })))`,
      /2400\d\d\d characters would leave at once with kube\.update, and 2097152 may/,
    ],
    [
      `Promise.all([1, 2].map(() => ctx.fetch("https://a.example", { body: "x".repeat(900_000) })))`,
      /2400\d\d\d characters, four for three bytes of a body, would leave at once with fetch, and 2097152 may/,
    ],
  ])("by its output names the limit and what was asked: %s", async (code, message) => {
    const fixture = fixtureForTest();
    await fixture.load("f", `export default (event, ctx) =>\n  ${code};`, { cpuMs: 5000 });
    const error = await errorOf(fixture);
    expect(error.code).toBe("WF_SANDBOX_OUTPUT");
    expect(error.message).toMatch(message);
    expect(error.stack).toMatch(/f\.ts:2:\d+/);
  });
});

it("a body that no request may have fails its fetch, which names its bytes and the limit", async () => {
  const fixture = fixtureForTest();
  const body = `new Uint8Array(1_500_000)`;
  await fixture.load(
    "f",
    `export default (event, ctx) =>\n  ctx.fetch("https://a.example", { method: "POST", body: ${body} });`,
  );
  const error = await errorOf(fixture);
  expect(error).toMatchObject({
    name: "FetchError",
    message: "the body has 1500000 bytes, larger than the 1048576 that a request may have",
  });
  expect(error.stack).toMatch(/f\.ts:2:\d+/);
  expect(fixture.calls).toEqual([]);
});

describe("an error that a handler throws for others", () => {
  const stackOf = async (code: string) => {
    const fixture = fixtureForTest();
    await fixture.load("f", code);
    return (await errorOf(fixture)).stack;
  };

  it("is shown with its causes and their places, below each other", async () => {
    const stack = await stackOf(
      `const deep = new RangeError("deep");\nconst inner = new Error("inner", { cause: deep });\nexport default () => {\n  throw new TypeError("outer", { cause: inner });\n};`,
    );
    expect(stack).toMatch(
      /^TypeError: outer\n {4}at .*f\.ts:4:\d+\)\nCaused by: Error: inner\n {4}at .*f\.ts:2:\d+\nCaused by: RangeError: deep\n {4}at .*f\.ts:1:\d+$/,
    );
  });

  it("is shown with a cause that is no Error, and with the errors that it stands for", async () => {
    const stack = await stackOf(
      `export default () => Promise.any([Promise.reject(new Error("one")), Promise.reject("two")]);`,
    );
    expect(stack).toMatch(
      /^AggregateError: .*\nAmong its errors: Error: one\n {4}at .*\nAmong its errors: Error: two$/,
    );
    expect(await stackOf(`export default () => { throw new Error("no", { cause: 7 }); };`)).toMatch(
      /Caused by: Error: 7$/,
    );
  });

  it.each([
    ["in a circle", `error.cause = error;`],
    ["that cannot be looked at", `Object.defineProperty(error, "cause", { get() { throw 1; } });`],
    ["that are proxies", `error.errors = error.cause = new Proxy({}, { get() { throw 1; } });`],
    ["without end", `error.errors = new Proxy([], { get: () => new Error("x".repeat(2000)) });`],
  ])("is shown, with causes %s", async (_, line) => {
    const stack = await stackOf(`export default () => { const error = new Error("no"); ${line} throw error; };`);
    expect(stack).toMatch(/^Error: no\n {4}at .*f\.ts:1:\d+/);
    expect(stack.length).toBeLessThan(5000);
  });
});

it("an attempt's duration begins when its handler does, not when it begins to wait for others", async () => {
  const fixture = fixtureForTest();
  await fixture.load("f", "export default () => { const until = Date.now() + 200; while (Date.now() < until); };", {
    cpuMs: 20_000,
  });
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => fixture.run("f", { timeoutMs: 30_000 })));
  const durations = outcomes.map((outcome) => (outcome.type === "ok" ? outcome.durationMs : Number.NaN));
  const total = durations.reduce((sum, ms) => sum + ms, 0);
  // If they waited for each other, it would take 1 + 2 + 3 + 4 times as long as one.
  expect(total).toBeLessThan(5 * Math.max(...durations));
});
