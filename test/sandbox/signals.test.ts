import { expect, it } from "vitest";
import { until } from "../tools/until.ts";
import { fixtureForTest } from "./fixture.ts";

it("a signal that reaches the executors along with the parent, as Ctrl-C does, ends no handler that runs", async () => {
  const fixture = fixtureForTest();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  fixture.answer = async () => {
    await answered;
    return { ok: true, json: "{}" };
  };
  const get = `ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", namespace: "team-a", name: "a" })`;
  await fixture.load("f", `export default async (event, ctx) => { await ${get}; };`);
  const outcome = fixture.run("f");
  await until("the handler waits for an answer", 5_000, async () => fixture.calls.length === 1);
  const pids = (await fixture.sandbox.executors()).flatMap(({ pid }) => pid ?? []);
  expect(pids.length).toBeGreaterThan(0);
  for (const pid of pids) for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.kill(pid, signal);
  // An executor that the signal ended would be gone by now.
  await fixture.load("g", "export default () => {};");
  expect((await fixture.run("g")).type).toBe("ok");
  answer();
  expect((await outcome).type).toBe("ok");
  expect(fixture.deaths).toEqual([]);
});
