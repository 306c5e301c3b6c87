import { expect, test } from "vitest";
import { fixtureForTest } from "./fixture.ts";

const node = { apiVersion: "v1", kind: "Node", metadata: { name: "a" } };

test("a look into the cache answers at once, in the order in which the handler asks, whatever it awaits between", async () => {
  const fixture = fixtureForTest();
  let asked = 0;
  fixture.answer = ({ operation }) => ({
    ok: true,
    json: operation.startsWith("cache.")
      ? JSON.stringify({ items: [node], resourceVersion: `${++asked}`, ageMs: 5 })
      : "{}",
  });
  await fixture.load(
    "f",
    `export default async (event, ctx) => {
      const query = { apiVersion: "v1", kind: "Node" };
      const first = ctx.cache.list(query);
      await ctx.kube.get({ ...query, name: "a" });
      const second = await ctx.cache.list(query);
      ctx.log.info(first.items[0].metadata.name, { at: [first.resourceVersion, second.resourceVersion] });
    };`,
  );
  expect((await fixture.run("f")).type).toBe("ok");
  expect(fixture.logs).toMatchObject([{ message: "a", fields: { at: ["1", "2"] } }]);
  expect(fixture.calls.map(({ operation }) => operation)).toEqual(["cache.list", "kube.get", "cache.list"]);
});

test("what is not there is undefined, and a refusal is a typed error with the handler's place", async () => {
  const fixture = fixtureForTest();
  fixture.answer = ({ args }) =>
    JSON.stringify(args).includes("gone")
      ? { ok: true, json: "null" }
      : {
          ok: false,
          error: { type: "ForbiddenError", message: "not kept", status: 403, details: { refusedBy: "runtime" } },
        };
  await fixture.load(
    "f",
    `import { ForbiddenError } from "@watchfire/sdk";
    export default (event, ctx) => {
      const ref = { apiVersion: "v1", kind: "Node" };
      ctx.log.info(String(ctx.cache.get({ ...ref, name: "gone" })));
      try { ctx.cache.get({ ...ref, name: "other" }); }
      catch (error) {
        ctx.log.info(error.message, { typed: error instanceof ForbiddenError, by: error.refusedBy, place: error.stack.split("\\n").length > 1 });
        throw error;
      }
    };`,
  );
  const outcome = await fixture.run("f");
  expect(outcome).toMatchObject({ type: "failed", error: { name: "ForbiddenError", message: "not kept" } });
  expect(fixture.logs.map(({ message }) => message)).toEqual(["undefined", "not kept"]);
  expect(fixture.logs[1]?.fields).toEqual({ typed: true, by: "runtime", place: true });
});

test("each event that has an isolate of its own can ask as well", async () => {
  const fixture = fixtureForTest();
  fixture.answer = () => ({ ok: true, json: JSON.stringify({ items: [], resourceVersion: "9", ageMs: 0 }) });
  const code = `export default (event, ctx) => { ctx.log.info(ctx.cache.age({ apiVersion: "v1", kind: "Node" }).resourceVersion); };`;
  await fixture.load("f", code, { isolation: "Event" });
  for (let times = 0; times < 3; times++) expect((await fixture.run("f")).type).toBe("ok");
  expect(fixture.logs.map(({ message }) => message)).toEqual(["9", "9", "9"]);
});

test("a handler that waits for an answer which never comes ends at its deadline, and its neighbours do not wait for it", async () => {
  const fixture = fixtureForTest();
  fixture.answer = ({ caller }) => (caller.function === "f" ? new Promise(() => {}) : { ok: true, json: "{}" });
  const code = `export default (event, ctx) => { ctx.cache.age({ apiVersion: "v1", kind: "Node" }); };`;
  await fixture.load("f", code);
  await fixture.load("g", code);
  const stuck = fixture.run("f", { timeoutMs: 1500 });
  for (let times = 0; times < 5; times++) expect((await fixture.run("g")).type).toBe("ok");
  expect(await stuck).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_DEADLINE" } });
  expect(fixture.deaths).toEqual([]);
});

test("what a handler keeps of its context asks nothing once the event is over", async () => {
  const fixture = fixtureForTest();
  await fixture.load(
    "f",
    `let kept;
    export default (event, ctx) => {
      if (kept) kept.get({ apiVersion: "v1", kind: "Node", name: "a" });
      kept = ctx.cache;
    };`,
  );
  expect((await fixture.run("f")).type).toBe("ok");
  expect(await fixture.run("f")).toMatchObject({
    type: "failed",
    error: { message: expect.stringContaining("after the event's end") },
  });
  expect(fixture.calls).toEqual([]);
});

test("a handler that replaces the language's functions sees nothing of how the cache is asked", async () => {
  const fixture = fixtureForTest();
  await fixture.load(
    "f",
    `export default (event, ctx) => {
      const seen = [];
      const note = (...values) => {
        for (const value of values) {
          const isHeld = (typeof value === "object" && value !== null) || typeof value === "function";
          if (isHeld && ("applySyncPromise" in value || value.name === "applySyncPromise")) seen[seen.length] = String(value);
        }
      };
      const { apply } = Reflect;
      Reflect.apply = (called, receiver, args) => (note(called, receiver, ...args), apply(called, receiver, args));
      for (const name of ["call", "apply", "bind"]) {
        const own = Function.prototype[name];
        Function.prototype[name] = function (...args) {
          note(this, ...args);
          return apply(own, this, args);
        };
      }
      Object.defineProperty(Object.prototype, "then", { configurable: true, get() { note(this); return undefined; } });
      Error.prepareStackTrace = (_, sites) => {
        for (const site of sites) note(site.getThis?.(), site.getFunction?.());
        return "";
      };
      const args = { apiVersion: "v1", kind: "Node", get name() { return new Error().stack; } };
      try { ctx.cache.get(args); ctx.cache.list(null); } catch (error) { note(error, error.stack); }
      for (const key of Reflect.ownKeys(globalThis)) note(globalThis[key]);
      delete Object.prototype.then;
      ctx.log.info("seen " + seen.length);
    };`,
  );
  expect((await fixture.run("f")).type).toBe("ok");
  expect(fixture.calls.map(({ operation }) => operation)).toContain("cache.get");
  expect(fixture.logs).toMatchObject([{ message: "seen 0" }]);
});
