import { describe, expect, it } from "vitest";
import { stageForTest } from "./stage.ts";

/** Bytes of etcd's largest object, as JSON may have them. */
const largest = 1_500_000;

describe("what goes to an executor is cut into frames that it can take:", () => {
  it("a batch of the largest events, each with its previous object", async () => {
    const stage = stageForTest();
    await stage.load("f", "export default (e) => { if (!e.object || !e.oldObject) throw new Error('cut'); };", {
      memoryMb: 128,
      cpuMs: 5000,
    });
    const body = Buffer.from(JSON.stringify({ text: "x".repeat(largest) }));
    const one = () => stage.run("f", { body, oldBody: body, timeoutMs: 60_000 });
    const outcomes = await Promise.all(Array.from({ length: 48 }, one));
    expect(outcomes.map(({ type }) => type)).toEqual(Array(48).fill("ok"));
    expect(stage.deaths).toEqual([]);
  }, 60_000);

  it("the largest answers, all at once", async () => {
    const stage = stageForTest();
    const count = 9;
    const json = JSON.stringify("x".repeat(15 * 2 ** 20));
    const waiting: (() => void)[] = [];
    stage.answer = () =>
      new Promise((resolve) => {
        waiting.push(() => resolve({ ok: true, json }));
        if (waiting.length === count) for (const answer of waiting) answer();
      });
    const call = `ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "p" })`;
    await stage.load("f", `export default (e, ctx) => Promise.all(Array.from({ length: ${count} }, () => ${call}));`, {
      memoryMb: 512,
      cpuMs: 10_000,
    });
    expect((await stage.run("f", { timeoutMs: 60_000 })).type).toBe("ok");
    expect(stage.deaths).toEqual([]);
  }, 60_000);
});
