import { describe, expect, it } from "vitest";
import { isolatesAlwaysKept } from "../../runtime/sandbox/executor/idle-isolates.ts";
import { fixtureForTest, type SandboxFixture } from "./fixture.ts";

/** Reports what earlier events left behind, then leaves as much as possible. */
const litterer = `
let moduleState = 0;
class Counter { static count = 0; }
export default async (event, ctx) => {
  const seen = [];
  if (moduleState > 0) seen.push("module");
  if (Counter.count > 0) seen.push("class");
  if (globalThis.left) seen.push("global");
  if ({}.polluted) seen.push("Object.prototype");
  if (JSON.parse("1") === "forged") seen.push("JSON");
  if ("field" in ctx.constructor) seen.push("ctx");
  if (Math.max(1, 2) !== 2) seen.push("Math");
  if (ctx.env.WHO !== "me") seen.push("env");
  await ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "p" });
  ctx.log.info(seen.join() || "clean");
  moduleState++; Counter.count++; globalThis.left = 1; Object.prototype.polluted = 1; JSON.parse = () => "forged";
  ctx.constructor.field = 1; Math.max = () => 0; crypto.getRandomValues(new Uint8Array(4));
  setInterval(() => { globalThis.left = 2; }, 1);
};`;

const messages = (fixture: SandboxFixture) => fixture.logs.map((line) => line.message);

it.each(["Handler", "Event"] as const)(
  "a handler finds no door of the executor's, with isolation: %s",
  async (isolation) => {
    const fixture = fixtureForTest();
    const code = `
    const doors = () => Object.getOwnPropertyNames(globalThis).filter((name) => name.startsWith("__watchfire"));
    const first = doors();
    export default (event, ctx) => ctx.log.info([...first, "and", ...doors()].join(" "));`;
    await fixture.load("f", code, { isolation });
    for (let run = 0; run < 3; run++) expect((await fixture.run("f")).type).toBe("ok");
    // The bundle's own globals for its default export and for the error of its top level, until that has run.
    expect(new Set(messages(fixture))).toEqual(new Set(["__watchfire_accept __watchfire_reject and"]));
  },
);

describe("with isolation: Event, an event", () => {
  it("finds nothing that an earlier one left: no global, prototype, module state or timer", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", litterer, { isolation: "Event", env: { WHO: "me" } });
    for (let run = 0; run < 20; run++) expect((await fixture.run("f")).type).toBe("ok");
    expect(new Set(messages(fixture))).toEqual(new Set(["clean"]));
    expect(fixture.logs).toHaveLength(20);
  });

  it("runs beside others of its function, each with its own answers and its own world", async () => {
    const fixture = fixtureForTest();
    const waiting: (() => void)[] = [];
    fixture.answer = ({ args }) =>
      new Promise((resolve) => waiting.push(() => resolve({ ok: true, json: JSON.stringify(args) })));
    await fixture.load(
      "f",
      `let mine;
      export default async (event, ctx) => {
        if (mine !== undefined) throw new Error("shared");
        mine = event.id;
        const got = await ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: event.id });
        if (got.ref.name !== event.id || mine !== event.id) throw new Error("mixed up");
      };`,
      { isolation: "Event" },
    );
    const runs = Array.from({ length: 40 }, () => fixture.run("f", { timeoutMs: 60_000 }));
    await expect.poll(() => waiting.length).toBeGreaterThan(1);
    const pump = setInterval(() => waiting.pop()?.(), 1);
    const outcomes = await Promise.all(runs);
    clearInterval(pump);
    expect(outcomes.filter((outcome) => outcome.type !== "ok")).toEqual([]);
  });

  it("that breaks a limit is charged alone, and the next one runs", async () => {
    const fixture = fixtureForTest();
    const code = "export default (e) => { if (e.trigger === 'loop') for (;;); };";
    await fixture.load("f", code, { isolation: "Event", cpuMs: 150 });
    const [loop, ...others] = await Promise.all([
      fixture.run("f", { trigger: "loop" }),
      ...Array.from({ length: 10 }, () => fixture.run("f")),
    ]);
    expect(loop).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_CPU_BUDGET" } });
    expect(others.map((outcome) => outcome.type)).toEqual(others.map(() => "ok"));
  });
});

const counting = "let count = 0;\nexport default (e, ctx) => { ctx.log.info(String(++count)); };";

describe("with isolation: Handler, an isolate", () => {
  it("keeps the module's state from one event to the next", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", counting);
    for (let run = 0; run < 3; run++) await fixture.run("f");
    expect(messages(fixture)).toEqual(["1", "2", "3"]);
  });

  it("is replaced after so many events, losing none", async () => {
    const fixture = fixtureForTest({ recycleEvents: 5 });
    await fixture.load("f", counting);
    for (let run = 0; run < 12; run++) expect((await fixture.run("f")).type).toBe("ok");
    expect(messages(fixture)).toEqual(["1", "2", "3", "4", "5", "1", "2", "3", "4", "5", "1", "2"]);
  });

  it("is let go of when nothing comes for it, and opened again by the next event", async () => {
    const fixture = fixtureForTest({ idleMs: 50 });
    await fixture.load("f", counting);
    const count = async () => {
      expect((await fixture.run("f")).type).toBe("ok");
      return messages(fixture).at(-1);
    };
    expect(await count()).toBe("1");
    await expect.poll(count, { interval: 400, timeout: 10_000 }).toBe("1");
  });

  it("gives way in a crowd if it never had an event, and keeps its state if it had", async () => {
    const fixture = fixtureForTest();
    await fixture.load("used", counting);
    expect((await fixture.run("used")).type).toBe("ok");
    const born = "const born = Date.now(); export default (event, ctx) => ctx.log.info(String(born));";
    const crowd = Array.from({ length: isolatesAlwaysKept + 6 }, (_, index) => `unused-${index}`);
    for (const name of crowd) await fixture.load(name, born);
    const loadedAt = Date.now();
    const nextBirth = async () => {
      expect((await fixture.run(crowd.shift() ?? "")).type).toBe("ok");
      return Number(messages(fixture).at(-1));
    };
    await expect.poll(nextBirth, { interval: 400, timeout: 10_000 }).toBeGreaterThan(loadedAt);
    expect((await fixture.run("used")).type).toBe("ok");
    expect(messages(fixture).at(-1)).toBe("2");
  });

  it("that hoards what events leave is replaced before it breaks its limit", async () => {
    const fixture = fixtureForTest();
    const code = `const hoard = [];
      export default (e, ctx) => { hoard.push(new Array(1e4).fill(hoard.length)); ctx.log.info(String(hoard.length)); };`;
    await fixture.load("f", code, { memoryMb: 64 });
    // 80 KB per event: the limit is reached after 800.
    let replaced = 0;
    for (let run = 0; run < 2000; run++) {
      expect((await fixture.run("f")).type).toBe("ok");
      if (run > 0 && messages(fixture).at(-1) === "1") replaced++;
    }
    expect(replaced).toBeGreaterThanOrEqual(2);
  });
});
