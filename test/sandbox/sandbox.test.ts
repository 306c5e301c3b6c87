import { describe, expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

const failed = { type: "failed" } as const;

describe("a handler", () => {
  it("gets the event as the door describes it, with its object parsed and its flags", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", "export default (event, ctx) => ctx.log.info('seen', event);");
    const outcome = await fixture.run("f", { flags: { synthetic: true, gap: { from: "3", to: "5" } }, attempt: 2 });
    expect(outcome.type).toBe("ok");
    expect(fixture.logs[0]?.fields).toEqual({
      id: "f-1",
      trigger: "settings",
      type: "Modified",
      attempt: 2,
      redelivered: false,
      resourceVersion: "7",
      synthetic: true,
      gap: { from: "3", to: "5" },
      object: { kind: "ConfigMap", metadata: { name: "settings" }, data: { n: "1" } },
    });
  });

  it("gets text beyond ASCII unharmed, and the previous object where there is one", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      "export default (e, ctx) => ctx.log.info(e.object.t + e.oldObject.t + ('oldObject' in e));",
    );
    const body = (t: string) => Buffer.from(JSON.stringify({ t }));
    await Promise.all([
      fixture.run("f", { body: body("né💥"), oldBody: body("alt—") }),
      fixture.run("f", { body: body("z"), oldBody: body("y") }),
    ]);
    expect(fixture.logs.map((line) => line.message).sort()).toEqual(["né💥alt—true", "zytrue"]);
  });

  it("retries by throwing, waits by RetryAfter and for a kind that is not served, gives up by PermanentError", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `import { NotServedError, PermanentError, RetryAfter } from "@watchfire/sdk";
      export default async (event) => {
        if (event.trigger === "a") throw new TypeError("plain");
        if (event.trigger === "b") throw new RetryAfter("5s");
        if (event.trigger === "d") throw new NotServedError("no kind Widget", { status: 404 });
        throw new PermanentError("never");
      };`,
    );
    expect(await fixture.run("f", { trigger: "a" })).toMatchObject({
      ...failed,
      error: { name: "TypeError", message: "plain" },
    });
    expect(await fixture.run("f", { trigger: "b" })).toMatchObject({ ...failed, retryAfterMs: 5000 });
    expect(await fixture.run("f", { trigger: "d" })).toMatchObject({
      ...failed,
      retryAfterMs: 30_000,
      error: { name: "NotServedError", message: "no kind Widget" },
    });
    expect(await fixture.run("f", { trigger: "c" })).toMatchObject({ type: "permanent", error: { message: "never" } });
  });

  it("asks by what it returns to be run again, at once or later; a rejection that nobody hears fails it all the same", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `import { requeueAfter } from "@watchfire/sdk";
      export default (event) => {
        if (event.trigger === "sync") return requeueAfter(5);
        if (event.trigger === "other") return { delayMs: 5 };
        if (event.trigger === "unheard") void Promise.reject(new Error("nobody"));
        return Promise.resolve(requeueAfter("1h30m"));
      };`,
    );
    expect(await fixture.run("f", { trigger: "sync" })).toMatchObject({ type: "ok", requeueAfterMs: 5 });
    expect(await fixture.run("f", { trigger: "async" })).toMatchObject({ type: "ok", requeueAfterMs: 5_400_000 });
    const other = await fixture.run("f", { trigger: "other" });
    expect([other.type, "requeueAfterMs" in other]).toEqual(["ok", false]);
    expect(await fixture.run("f", { trigger: "unheard" })).toMatchObject({ ...failed, error: { message: "nobody" } });
  });

  it("is told a key, its causes and its object, which is undefined where it is gone", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      "export default (run, ctx) => ctx.log.info(JSON.stringify(run) + typeof run.object + Object.keys(run));",
    );
    const causes = [{ type: "Resync" }] as const;
    const object = { apiVersion: "v1", kind: "ConfigMap", namespace: "", name: "all", uid: "" };
    await fixture.run("f", { causes, object, body: Buffer.from('{"a":1}') });
    await fixture.run("f", { causes, object: { ...object, namespace: "team-a" }, body: Buffer.alloc(0) });
    expect(fixture.logs.map(({ message }) => message)).toEqual([
      '{"key":{"name":"all"},"causes":[{"type":"Resync"}],"attempt":1,"redelivered":false,"object":{"a":1}}objectkey,causes,attempt,redelivered,object',
      '{"key":{"namespace":"team-a","name":"all"},"causes":[{"type":"Resync"}],"attempt":1,"redelivered":false}undefinedkey,causes,attempt,redelivered,object',
    ]);
  });

  it("fails with a stack in its author's file, line and column, through async calls", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      [
        "async function inner() {",
        "  await null;",
        "  const missing = undefined as any;",
        "  missing.field;",
        "}",
      ].join("\n") +
        "\nasync function outer() {\n  await inner();\n}\nexport default async function handle() {\n  await outer();\n}\n",
    );
    const outcome = await fixture.run("f");
    expect(outcome).toMatchObject({ ...failed, error: { name: "TypeError" } });
    const places =
      outcome.type === "failed" ? [...outcome.error.stack.matchAll(/(\w+) \(.*\/f\.ts:(\d+):(\d+)\)/g)] : [];
    expect(places.map(([, name, line, column]) => `${name} ${line}:${column}`)).toEqual([
      "inner 4:11",
      "outer 7:3",
      "handle 10:3",
    ]);
  });

  it("calls the cluster in its own event's name, and gets typed errors with its own line", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `import { ForbiddenError } from "@watchfire/sdk";
      export default async (event, ctx) => {
        const got = await ctx.kube.get({ apiVersion: "v1", kind: "Secret", name: "a" });
        ctx.log.info(got.kind);
        try { await ctx.kube.delete({ apiVersion: "v1", kind: "Secret", name: "a" }); }
        catch (error) { if (error instanceof ForbiddenError) ctx.log.warn(error.missingRule); throw error; }
      };`,
    );
    fixture.answer = ({ operation }) =>
      operation === "kube.get"
        ? { ok: true, json: `{"kind":"Secret"}` }
        : {
            ok: false,
            error: { type: "ForbiddenError", message: "no", status: 403, details: { missingRule: "delete secrets" } },
          };
    const outcome = await fixture.run("f");
    expect(fixture.calls.map((call) => [call.operation, call.caller.id, call.args])).toEqual([
      ["kube.get", "f-1", { ref: { apiVersion: "v1", kind: "Secret", name: "a" } }],
      ["kube.delete", "f-1", { ref: { apiVersion: "v1", kind: "Secret", name: "a" } }],
    ]);
    expect(fixture.logs.map((line) => line.message)).toEqual(["Secret", "delete secrets"]);
    expect(outcome).toMatchObject({
      ...failed,
      error: { name: "ForbiddenError", stack: expect.stringMatching(/f\.ts:5:/) },
    });
  });

  it("tries a conflicting update again, five times at most", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default (event, ctx) => ctx.kube.retryOnConflict({ apiVersion: "v1", kind: "ConfigMap", name: "a" }, (o) => { o.n = 1; });`,
    );
    fixture.answer = ({ operation }) =>
      operation === "kube.get"
        ? { ok: true, json: "{}" }
        : { ok: false, error: { type: "ConflictError", message: "changed" } };
    expect(await fixture.run("f")).toMatchObject({ ...failed, error: { name: "ConflictError" } });
    expect(fixture.calls.filter((call) => call.operation === "kube.update")).toHaveLength(5);
  });

  it("has its environment, metrics, a console, and the web's own tools", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default async (event, ctx) => {
        ctx.metrics.increment("seen", 2, { of: ctx.env.WHO });
        console.warn("to", { a: 1 });
        await new Promise((resolve) => setTimeout(resolve, 5));
        const url = new URL("https://a.example/x?y=1");
        const bytes = new TextEncoder().encode("é");
        const clone = structuredClone({ at: new Date(5), m: new Map([[1, 2]]) });
        const random = crypto.getRandomValues(new Uint8Array(8)).some((byte) => byte > 0);
        const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID());
        ctx.log.info([url.searchParams.get("y"), bytes.length, clone.at.getTime(), clone.m.get(1), atob(btoa("hi")), random, uuid].join());
      };`,
      { env: { WHO: "me" } },
    );
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.metrics).toEqual([{ type: "increment", name: "seen", value: 2, labels: { of: "me" } }]);
    expect(fixture.logs.map((line) => line.message)).toEqual([`to {"a":1}`, "1,2,5,2,hi,true,true"]);
  });

  it("finds a whole file in a variable: all that a Secret can hold", async () => {
    const fixture = fixtureForTest();
    const CONFIG = `${"é".repeat(2 ** 19 - 2)}end`;
    await fixture.load("f", "export default (_, ctx) => ctx.log.info(ctx.env.CONFIG.slice(-4));", { env: { CONFIG } });
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.logs.map(({ message }) => message)).toEqual(["éend"]);
  });

  it("is told by ctx.signal that its time is over, and the parent's calls for it are aborted", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default (event, ctx) => new Promise((_, reject) => {
        ctx.kube.get({ apiVersion: "v1", kind: "Secret", name: "a" });
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
      });`,
    );
    fixture.answer = () => new Promise(() => {});
    const outcome = await fixture.run("f", { timeoutMs: 1000 });
    expect(outcome).toMatchObject({ ...failed, error: { code: "WF_SANDBOX_DEADLINE" } });
    expect(fixture.calls[0]?.signal.aborted).toBe(true);
  });

  it("finishes on the old code while new code takes the events that follow", async () => {
    const fixture = fixtureForTest();
    let release = () => {};
    fixture.answer = () => new Promise((resolve) => (release = () => resolve({ ok: true, json: "{}" })));
    const code = (version: string) =>
      `export default async (e, ctx) => { if (e.trigger === "slow") await ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "p" }); ctx.log.info("${version}"); };`;
    await fixture.load("f", code("old"));
    const slow = fixture.run("f", { trigger: "slow" });
    await expect.poll(() => fixture.calls.length).toBe(1);
    await fixture.load("f", code("new"));
    await fixture.run("f");
    release();
    expect(await slow).toEqual({ type: "ok", durationMs: expect.any(Number) });
    expect(fixture.logs.map((line) => line.message)).toEqual(["new", "old"]);
  });

  it("keeps its old code where the new one cannot be loaded", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", "export default () => {};");
    await expect(fixture.load("f", "throw new Error('no');\nexport default () => {};")).rejects.toThrow(/f\.ts:1:7/);
    expect((await fixture.run("f")).type).toBe("ok");
  });
});

it("a reconciler is refused where the manifest's mode would tell it events, and taken where it reconciles", async () => {
  const fixture = fixtureForTest();
  const code = `import { defineReconciler } from "@watchfire/sdk";
    export default defineReconciler(() => {});`;
  await expect(fixture.load("f", code)).rejects.toMatchObject({ code: "WF_SANDBOX_MODE" });
  await expect(fixture.load("f", code, { mode: "Latest" })).rejects.toThrow("delivery.mode is Latest");
  await fixture.load("f", code, { mode: "Reconcile" });
  expect((await fixture.run("f")).type).toBe("ok");
});

it.each(["defineHandler", "defineBatchHandler"])(
  "what %s made is refused where the manifest's mode is Reconcile, and taken elsewhere",
  async (define) => {
    const fixture = fixtureForTest();
    const code = `import { ${define} } from "@watchfire/sdk";
    export default ${define}(() => {});`;
    const refused = fixture.load("f", code, { mode: "Reconcile" });
    await expect(refused).rejects.toMatchObject({ code: "WF_SANDBOX_MODE" });
    await expect(refused).rejects.toThrow(/handler of f is made by defineHandler, and delivery.mode is Reconcile/);
    await fixture.load("f", code);
    expect((await fixture.run("f")).type).toBe("ok");
  },
);

it.each([
  [
    "is exported by require's way",
    `const wf = require("@watchfire/sdk");
    module.exports = wf.defineHandler(() => {});`,
  ],
  ["imports the SDK while it runs", `export default async () => { await import("@watchfire/sdk"); };`],
  [
    "stands beside a reconciler",
    `import { defineHandler, defineReconciler } from "@watchfire/sdk";
    export const other = defineReconciler(() => {});
    other.of = "keys";
    export default defineHandler(() => {});`,
  ],
  ["has the reconciler's mark in a text", `export default () => "@watchfire/sdk/reconciler";`],
])("a handler of events that %s is taken in mode All", async (_, code) => {
  const fixture = fixtureForTest();
  await fixture.load("f", code);
  expect((await fixture.run("f")).type).toBe("ok");
});

it("a reconciler that stands beside a handler of events is refused in mode All, at its export", async () => {
  const fixture = fixtureForTest();
  const code = `import { defineHandler, defineReconciler } from "@watchfire/sdk";
    export const other = defineHandler(() => {});
    other.of = "events";
    export default defineReconciler(() => {});`;
  await expect(fixture.load("f", code)).rejects.toThrow(
    /^WF_SANDBOX_MODE \S*f\.ts:4:5: the handler of f is made by defineReconciler, and delivery\.mode is All; /,
  );
});

it("a handler that nothing says to be of a mode is taken in each", async () => {
  const fixture = fixtureForTest();
  await fixture.load("f", "export default () => {};", { mode: "Reconcile" });
  await fixture.load("f", "export default () => {};");
});

describe("a module that cannot be loaded says where", () => {
  it.each([
    ["throws", "const a = 1;\nthrow new Error('at once');\nexport default () => {};", "WF_SANDBOX_LOAD", /f\.ts:2:7/],
    [
      "loops",
      "let a = 1;\nwhile (a > 0) {\n  a++;\n}\nexport default () => {};",
      "WF_SANDBOX_LOAD_TIME",
      /f\.ts:[2-5]:/,
    ],
    ["exports no function", "export default { not: 1 };", "WF_BUNDLE_NO_HANDLER", /f\.ts:1:1/],
    [
      "allocates",
      "const m = [];\nfor (;;) m.push(new Array(1e5).fill(1.5));\nexport default () => {};",
      "WF_SANDBOX_MEMORY",
      /f\.ts:3:1/,
    ],
    [
      "allocates buffers, the large and then the small",
      `const m = [];
try { for (;;) m.push(new Uint8Array(1e5)); } catch {}
for (;;) m.push(new Uint8Array(16).buffer);
export default () => {};`,
      "WF_SANDBOX_MEMORY",
      /f\.ts:4:1/,
    ],
  ])("when its top level %s", async (_, code, expected, place) => {
    const fixture = fixtureForTest();
    await fixture.load("other", "export default () => {};");
    const error = await fixture.load("f", code).then(
      () => undefined,
      (failure) => failure,
    );
    expect(fixture.notes).toEqual([]);
    expect(error).toMatchObject({ code: expected, message: expect.stringMatching(place) });
    expect((await fixture.run("other")).type).toBe("ok");
  });
});

// esbuild does not parse regular expressions.
it.each([undefined, "Event"] as const)(
  "what V8 alone finds malformed in a module is told as it is (%s)",
  async (isolation) => {
    const fixture = fixtureForTest();
    const loading = fixture.load("f", 'export default () => /(/u.test("a");', isolation ? { isolation } : {});
    await expect(loading).rejects.toMatchObject({
      code: "WF_SANDBOX_LOAD",
      message: expect.stringMatching(/SyntaxError.*Unterminated group/),
    });
    expect(fixture.deaths).toEqual([]);
  },
);
