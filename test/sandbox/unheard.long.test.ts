import { describe, expect, it } from "vitest";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import type { HostReply } from "../../runtime/sandbox/host-calls.ts";
import { fixtureForTest, type SandboxFixture } from "./fixture.ts";

const refused: HostReply = {
  ok: false,
  error: { type: "ForbiddenError", message: "no rule grants it", status: 403, details: { missingRule: "get secrets" } },
};
const get = `ctx.kube.get({ apiVersion: "v1", kind: "Secret", name: "a" })`;
const sleep = (ms: number) => `await new Promise((resolve) => setTimeout(resolve, ${ms}));`;
const handler = (...lines: string[]) => `export default async (event, ctx) => {\n${lines.join("\n")}\n};`;

async function failureOf(fixture: SandboxFixture, name = "f") {
  const outcome = await fixture.run(name);
  return outcome.type === "failed" ? outcome.error : expect.unreachable(`it ended ${outcome.type}`);
}

describe("a rejection that nobody hears fails its attempt, with the error and the place as its author knows them,", () => {
  it.each([
    ["when the handler returns at once", handler(`  Promise.reject(new TypeError("unheard"));`), 2],
    ["when the handler goes on", handler(`  Promise.reject(new TypeError("unheard"));`, sleep(20)), 2],
    [
      "when it comes from an async function",
      handler(`  (async () => {\n    await null;\n    throw new TypeError("unheard");\n  })();`, sleep(5)),
      4,
    ],
    [
      "when it comes from a timer",
      handler(`  setTimeout(() => {\n    throw new TypeError("unheard");\n  }, 1);`, sleep(50)),
      3,
    ],
    [
      "when it comes from a timer's promise",
      handler(`  setTimeout(async () => {\n    throw new TypeError("unheard");\n  }, 1);`, sleep(50)),
      3,
    ],
  ])("%s", async (_, code, line) => {
    const fixture = fixtureForTest();
    await fixture.load("f", code);
    const error = await failureOf(fixture);
    expect(error).toMatchObject({ name: "TypeError", message: "unheard" });
    expect(error.stack).toMatch(new RegExp(`f\\.ts:${line}:\\d+`));
    expect(fixture.deaths).toEqual([]);
    expect(fixture.sandbox.status("f")).toMatchObject({ state: "ready", kills: 0 });
  });

  it.each(["get", "list"])("when it is a refused ctx.kube.%s", async (verb) => {
    const fixture = fixtureForTest();
    fixture.answer = () => refused;
    await fixture.load(
      "f",
      handler(`  ctx.kube.${verb}({ apiVersion: "v1", kind: "Secret", name: "a" });`, sleep(100)),
    );
    const error = await failureOf(fixture);
    expect(error).toMatchObject({ name: "ForbiddenError", message: "no rule grants it" });
    expect(error.stack).toMatch(/f\.ts:2:\d+/);
  });

  it("when it is no Error", async () => {
    const fixture = fixtureForTest();
    await fixture.load("text", handler(`  Promise.reject("text");`));
    await fixture.load("object", handler(`  Promise.reject({ a: 1 });`));
    expect(await failureOf(fixture, "text")).toMatchObject({ name: "Error", message: "text" });
    expect(await failureOf(fixture, "object")).toMatchObject({
      name: "Error",
      message: "an object that is not an Error",
    });
  });
});

describe("a rejection that is heard before the attempt's end fails nothing,", () => {
  const late = (made: string) => [
    `  const promise = ${made};`,
    sleep(60),
    `  try { await promise; } catch (error) { ctx.log.info(error.message); }`,
  ];
  it.each([
    ["of a call", handler(...late(get))],
    ["of a list", handler(...late(get.replace("get", "list")))],
    ["of a promise of its own", handler(...late(`Promise.reject(new TypeError("no rule grants it"))`))],
    ["of an async function", handler(...late(`(async () => { await null; await ${get}; })()`))],
    [
      "by Promise.allSettled",
      handler(
        `const promise = ${get};`,
        sleep(60),
        `const [{ reason }] = await Promise.allSettled([promise]); ctx.log.info(reason.message);`,
      ),
    ],
    [
      "by catch",
      handler(`const promise = ${get};`, sleep(60), `promise.catch((error) => ctx.log.info(error.message));`, sleep(5)),
    ],
  ])("%s", async (_, code) => {
    const fixture = fixtureForTest();
    fixture.answer = () => refused;
    await fixture.load("f", code);
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.logs.map((line) => line.message)).toEqual(["no rule grants it"]);
    expect(fixture.deaths).toEqual([]);
  });
});

describe("of many events at once", () => {
  it("those that leave a rejection fail, each with its own, and no other does", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      handler(
        `  await null;`,
        `  if (event.trigger === "bad") Promise.reject(new Error(event.id));`,
        `  await ${get};`,
      ),
    );
    const triggers = Array.from({ length: 60 }, (_, index) => (index % 7 === 3 ? "bad" : "good"));
    const endings = await Promise.all(
      triggers.map(async (trigger) => {
        for (;;) {
          const delivery = fixture.delivery("f", { trigger });
          const outcome = await run(fixture.sandbox, delivery);
          if (outcome.type === "interrupted") continue;
          if (outcome.type === "failed") expect(outcome.error.message).toBe(delivery.id);
          return outcome.type;
        }
      }),
    );
    expect(endings).toEqual(triggers.map((trigger) => (trigger === "bad" ? "failed" : "ok")));
    expect(fixture.deaths).toEqual([]);
  });
});

describe("after its handler has returned", () => {
  it("a refused call leaves one warning in its function's name", async () => {
    const fixture = fixtureForTest();
    fixture.answer = () => refused;
    await fixture.load("f", handler(`  ${get};`));
    for (let run = 0; run < 3; run++) expect((await fixture.run("f")).type).toBe("ok");
    await expect.poll(() => fixture.logs.length, { timeout: 10_000 }).toBe(1);
    expect(fixture.logs[0]).toMatchObject({
      level: "warn",
      id: "f-1",
      fields: { operation: "kube.get", error: "ForbiddenError: no rule grants it" },
    });
  });

  it("a rejection leaves one warning with its place, and fails no other event", async () => {
    const fixture = fixtureForTest();
    const { promise: logged, resolve } = Promise.withResolvers<void>();
    fixture.answer = async () => {
      await logged;
      return { ok: true, json: "{}" };
    };
    await fixture.load(
      "f",
      handler(
        `  if (event.trigger === "waits") return ${get};`,
        `  setTimeout(async () => {`,
        `    throw new RangeError("late");`,
        `  }, 300);`,
      ),
    );
    expect((await fixture.run("f")).type).toBe("ok");
    // An isolate is frozen between events, so the timer fires during this event.
    const waits = fixture.run("f", { trigger: "waits" });
    await expect.poll(() => fixture.logs.length, { timeout: 10_000 }).toBe(1);
    resolve();
    expect((await waits).type).toBe("ok");
    expect(fixture.logs[0]).toMatchObject({
      level: "warn",
      fields: { error: { name: "RangeError", message: "late", stack: expect.stringMatching(/f\.ts:4:\d+/) } },
    });
  });
});

describe("what a handler did not wait for, and fails while its isolate stands still,", () => {
  const forgotten = (ms: number) => `(async () => {\n${sleep(ms)}\nthrow new RangeError("late " + event.id);\n})();`;
  const waiting = `if (event.trigger === "waits") {\n${sleep(30)}\nreturn;\n}`;

  /** Waits for this time in another function's handler. */
  async function elapse(fixture: SandboxFixture, ms: number) {
    await fixture.load("clock", handler(sleep(ms)));
    expect((await fixture.run("clock")).type).toBe("ok");
  }

  it.each([
    ["of one event", 1],
    ["of several", 5],
  ])("%s, is one warning with its place, and the next event runs once in the same isolate", async (_, count) => {
    const fixture = fixtureForTest();
    await fixture.load("f", `let runs = 0;\n${handler(`ctx.log.info(String(++runs));`, waiting, forgotten(20))}`);
    for (let run = 0; run < count; run++) expect((await fixture.run("f")).type).toBe("ok");
    await elapse(fixture, 40);
    expect((await fixture.run("f", { trigger: "waits" })).type).toBe("ok");
    const warnings = () => fixture.logs.filter((line) => line.level === "warn");
    await expect.poll(warnings, { timeout: 10_000 }).toMatchObject([
      {
        fields: { error: { name: "RangeError", message: "late f-1", stack: expect.stringMatching(/f\.ts:\d+:\d+/) } },
      },
    ]);
    expect(fixture.logs.filter((line) => line.level === "info").map((line) => line.message)).toEqual(
      Array.from({ length: count + 1 }, (_, run) => String(run + 1)),
    );
    expect(fixture.deaths).toEqual([]);
  });

  it("is a warning also where the next handler returns at once", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", handler(`if (event.trigger !== "waits") ${forgotten(20)}`));
    expect((await fixture.run("f")).type).toBe("ok");
    await elapse(fixture, 40);
    expect((await fixture.run("f", { trigger: "waits" })).type).toBe("ok");
    await expect.poll(() => fixture.logs.length, { timeout: 10_000 }).toBe(1);
    expect(fixture.logs[0]?.message).toContain("no handler is left for");
  });

  it("and uses more than its CPU time, is the next event's harm, as any code in its time", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", handler(`if (event.trigger !== "waits") setTimeout(() => { for (;;); }, 20);`));
    expect((await fixture.run("f")).type).toBe("ok");
    await elapse(fixture, 40);
    const error = { code: "WF_SANDBOX_CPU_BUDGET" };
    expect(await fixture.run("f", { trigger: "waits" })).toMatchObject({ type: "failed", error });
    expect((await fixture.run("f", { trigger: "waits" })).type).toBe("ok");
  });
});

it("what a handler did not wait for, and fails beside others' timers, fails and interrupts none of them", async () => {
  const fixture = fixtureForTest();
  await fixture.load(
    "f",
    handler(
      `if (event.trigger === "leaves") {`,
      `  (async () => { ${sleep(10)} throw new Error("late"); })();`,
      `  return;`,
      `}`,
      `for (let turn = 0; turn < 30; turn++) ${sleep(1)}`,
    ),
  );
  const runs = Array.from({ length: 40 }, (_, at) => fixture.run("f", { trigger: at % 2 === 0 ? "leaves" : "waits" }));
  expect((await Promise.all(runs)).map(({ type }) => type)).toEqual(runs.map(() => "ok"));
  await expect.poll(() => fixture.logs, { timeout: 10_000 }).toHaveLength(1);
});

it("a timer comes to its turn however many events there are beside it", async () => {
  const fixture = fixtureForTest();
  await fixture.load("f", handler(`if (event.trigger === "waits") ${sleep(20)}`));
  let isDone = false;
  const waits = fixture.run("f", { trigger: "waits" }).finally(() => {
    isDone = true;
  });
  while (!isDone) await Promise.all(Array.from({ length: 64 }, () => fixture.run("f")));
  expect((await waits).type).toBe("ok");
});

it("a module whose top level leaves a rejection unheard cannot be loaded, and says where", async () => {
  const fixture = fixtureForTest();
  const loading = fixture.load("f", `const a = 1;\nPromise.reject(new TypeError("at once"));\nexport default () => a;`);
  await expect(loading).rejects.toThrow(/WF_SANDBOX_LOAD.*f\.ts:2:16.*TypeError: at once/);
  expect(fixture.deaths).toEqual([]);
});
