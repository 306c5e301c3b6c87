import { describe, expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

/** Size of etcd's largest object, in bytes of JSON. */
const largest = 1_500_000;

describe("what goes to an executor is cut into frames that it can take:", () => {
  it("a batch of the largest events, each with its previous object", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", "export default (e) => { if (!e.object || !e.oldObject) throw new Error('cut'); };", {
      memoryMb: 128,
      cpuMs: 5000,
    });
    const body = Buffer.from(JSON.stringify({ text: "x".repeat(largest) }));
    const one = () => fixture.run("f", { body, oldBody: body, timeoutMs: 60_000 });
    const outcomes = await Promise.all(Array.from({ length: 48 }, one));
    expect(outcomes.map(({ type }) => type)).toEqual(Array(48).fill("ok"));
    expect(fixture.deaths).toEqual([]);
  }, 60_000);

  it("the largest answers, all at once", async () => {
    const fixture = fixtureForTest();
    const count = 9;
    const json = JSON.stringify("x".repeat(15 * 2 ** 20));
    const waiting: (() => void)[] = [];
    fixture.answer = () =>
      new Promise((resolve) => {
        waiting.push(() => resolve({ ok: true, json }));
        if (waiting.length === count) for (const answer of waiting) answer();
      });
    const call = `ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "p" })`;
    await fixture.load(
      "f",
      `export default (e, ctx) => Promise.all(Array.from({ length: ${count} }, () => ${call}));`,
      {
        memoryMb: 512,
        cpuMs: 10_000,
      },
    );
    expect((await fixture.run("f", { timeoutMs: 60_000 })).type).toBe("ok");
    expect(fixture.deaths).toEqual([]);
  }, 60_000);
});

it("calls that wait for another's answer hold no more than 16 MiB of arguments; the others are told that they are too many", async () => {
  const fixture = fixtureForTest();
  const answered = Promise.withResolvers<void>();
  const large = JSON.stringify("x".repeat(12 * 2 ** 20));
  fixture.answer = async ({ args }) => {
    const asked = JSON.stringify(args);
    if (asked.includes("slow")) await answered.promise;
    return { ok: true, json: asked.includes("large") ? large : "{}" };
  };
  await fixture.load(
    "f",
    `const of = (name) => ({ apiVersion: "v1", kind: "ConfigMap", namespace: "team-a", name });
     export default async (event, ctx) => {
       await ctx.kube.get(of("large"));
       const slow = ctx.kube.get(of("slow"));
       const data = { text: "x".repeat(2 ** 20) };
       let refused = 0;
       const calls = [];
       for (let count = 0; count < 40; count++) {
         calls.push(ctx.kube.patch(of("more"), { data }).catch(({ name }) => { if (name === "TooManyRequestsError") refused++; }));
         await new Promise((resolve) => setTimeout(resolve));
       }
       ctx.log.info("made");
       await Promise.all([slow, ...calls]);
       ctx.log.info("answered", { refused });
     };`,
    { memoryMb: 256, cpuMs: 10_000 },
  );
  const running = fixture.run("f", { timeoutMs: 20_000 });
  await expect.poll(() => fixture.logs, { timeout: 20_000 }).toHaveLength(1);
  expect(fixture.calls).toHaveLength(2);
  answered.resolve();
  expect((await running).type).toBe("ok");
  // One call of 1 MiB is slightly larger with its name, so 15 waited.
  expect(fixture.calls).toHaveLength(2 + 15);
  expect(fixture.logs.at(-1)?.fields).toEqual({ refused: 25 });
}, 60_000);
