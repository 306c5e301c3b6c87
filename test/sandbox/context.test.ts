import { expect, test } from "vitest";
import { fixtureForTest } from "./fixture.ts";

test("a handler may spread its context, and hand on what it makes of it", async () => {
  const fixture = fixtureForTest();
  await fixture.load(
    "f",
    `export default async (event, ctx) => {
      const more = { ...ctx, extra: 1 };
      await more.kube.get({ apiVersion: "v1", kind: "ConfigMap", name: "a", namespace: "b" });
      const { log, env } = ctx;
      more.log.info("spread", { names: Object.keys(more).sort(), token: more.env.TOKEN, same: log === more.log && env === more.env });
      if (more.signal !== ctx.signal || typeof more.fetch !== "function" || !("events" in ctx)) throw new Error("parts differ");
    };`,
    { env: { TOKEN: "t" } },
  );
  expect((await fixture.run("f")).type).toBe("ok");
  const names = ["cache", "env", "events", "extra", "fetch", "kube", "log", "metrics", "signal", "state"];
  expect(fixture.logs.map(({ fields }) => fields)).toEqual([{ names, token: "t", same: true }]);
  expect(fixture.calls.map(({ operation }) => operation)).toEqual(["kube.get"]);
});

test("a handler that meddles with the language's own objects changes nobody's context but its own", async () => {
  const fixture = fixtureForTest();
  const code = `
    Object.defineProperty(Object.prototype, "kube", { value: "mine", configurable: true });
    globalThis.Proxy = class { constructor() { return {}; } };
    Array.prototype[Symbol.iterator] = () => { throw new Error("iterated"); };
    export default (event, ctx) => { ctx.log.info(typeof ctx.kube.get + Object.keys(ctx).length); };`;
  await fixture.load("f", code);
  expect((await fixture.run("f")).type).toBe("ok");
  expect(fixture.logs.map(({ message }) => message)).toEqual(["function9"]);
});
