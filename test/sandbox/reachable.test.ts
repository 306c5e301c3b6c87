import { expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

/**
 * Visits everything reachable from a handler's globals and arguments, and logs the values that have a method of an isolated-vm
 * handle.
 */
const walk = `
const methods = ["applySync", "applyIgnored", "derefInto", "copySync", "createContextSync", "setSync", "getHeapStatisticsSync"];
export default (event, ctx) => {
  const seen = new Set();
  const queue = [globalThis, event, ctx, (() => {}).constructor, (async () => {}).constructor];
  const found = [];
  while (queue.length > 0) {
    const value = queue.pop();
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
    seen.add(value);
    if (methods.some((name) => name in value)) found.push(String(value));
    queue.push(Object.getPrototypeOf(value));
    for (const key of Reflect.ownKeys(value)) {
      const { value: held, get, set } = Reflect.getOwnPropertyDescriptor(value, key) ?? {};
      queue.push(held, get, set);
    }
  }
  ctx.log.info("walked", { count: seen.size, found });
};`;

it("a handler reaches no handle of isolated-vm, of all that hangs from its globals and arguments", async () => {
  const fixture = fixtureForTest();
  await fixture.load("f", walk, { cpuMs: 5_000 });
  expect(await fixture.run("f")).toMatchObject({ type: "ok" });
  const [line] = fixture.logs;
  expect(line?.fields).toMatchObject({ found: [] });
  expect(Number(line?.fields.count)).toBeGreaterThan(500);
});
