import { createCipheriv, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BatchSize } from "../../runtime/sandbox/executor/batch.ts";
import { summarise } from "../../runtime/sandbox/executor/outbox.ts";
import { IsolateSlots } from "../../runtime/sandbox/executor/slots.ts";
import { getRandomValues, seed } from "../../runtime/sandbox/guest/random.guest.ts";
import { fixtureForTest } from "./fixture.ts";

describe("an isolate", () => {
  it("lives on under a backlog of many times its memory", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", "export default (event) => event.object.big.length;", { memoryMb: 16 });
    const body = Buffer.from(JSON.stringify({ big: "x".repeat(200_000) }));
    let left = 1000;
    const endings = new Set<string>();
    const lane = async () => {
      while (left-- > 0) endings.add((await fixture.run("f", { body, timeoutMs: 60_000 })).type);
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    expect([...endings]).toEqual(["ok"]);
  });

  it("optimises hot code as the parent's engine does", async () => {
    const fixture = fixtureForTest();
    const loop = "let sum = 0; for (let i = 0; i < 3e7; i++) sum = (sum + i * 7) % 1000003;";
    await fixture.load(
      "f",
      `export default (e, ctx) => { const run = () => { const at = Date.now(); ${loop} return Date.now() - at + (sum < 0 ? 1 : 0); };
        run(); ctx.log.info(String(Math.min(run(), run(), run()))); };`,
      { cpuMs: 60_000 },
    );
    await fixture.run("f", { timeoutMs: 60_000 });
    const here = new Function(
      `const at = performance.now(); ${loop} return performance.now() - at + (sum < 0 ? 1 : 0);`,
    );
    here();
    const host = Math.max(here(), here(), here());
    expect(Number(fixture.logs[0]?.message)).toBeLessThan(3 * host + 20);
  });

  it("lets handlers that wait interleave, each with its own answers", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default async (event, ctx) => {
        const got = await ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: event.id });
        if (got.name !== event.id) throw new Error("mixed up");
      };`,
    );
    fixture.answer = async ({ args }) => ({
      ok: true,
      json: JSON.stringify({ name: (args as { ref: { name: string } }).ref.name }),
    });
    const outcomes = await Promise.all(Array.from({ length: 300 }, () => fixture.run("f", { timeoutMs: 30_000 })));
    expect(outcomes.filter((outcome) => outcome.type !== "ok")).toEqual([]);
    expect(fixture.calls.every((call) => call.caller.id === (call.args as { ref: { name: string } }).ref.name)).toBe(
      true,
    );
  });
});

describe("a batch", () => {
  it("begins with one event, grows while events are cheap, and shrinks at once when they are not", () => {
    const size = new BatchSize();
    expect(size.items).toBe(1);
    for (let entry = 0; entry < 6; entry++) size.took(size.items, size.items * 0.02);
    expect(size.items).toBe(64);
    size.took(64, 640);
    expect(size.items).toBe(2);
  });
});

describe("slots", () => {
  it("are never more in use than there are, and go to those who wait in their order", async () => {
    const slots = new IsolateSlots(1);
    expect(slots.take()).toBeUndefined();
    const order: number[] = [];
    const waiting = [1, 2].map((who) => slots.take()?.then(() => order.push(who)));
    expect(slots.used).toBe(1);
    slots.give();
    slots.give();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2]);
  });
});

describe("an outbox", () => {
  it("is refused where the guest's own limits were not kept", () => {
    expect(summarise('[[1,[2,"output",0,0,0,-1]],[],[],[],-1,[],0]\n')?.done).toEqual([
      { no: 1, tainted: false },
      { no: 2, tainted: true },
    ]);
    expect(summarise(`[[],[],[],[],-1,[],0]\n${"x".repeat(5_000_000)}`)).toBeUndefined();
    expect(summarise(`[[],[],["${"x".repeat(500_000)}"],[],-1,[],0]\n`)).toBeUndefined();
    expect(summarise("{}")).toBeUndefined();
    expect(summarise(undefined)).toBeUndefined();
  });
});

describe("the guest's random stream", () => {
  it("is ChaCha20's, and its first 32 bytes are the next key", () => {
    let key = randomBytes(32);
    seed(key.toString("hex"));
    for (const length of [32, 16, 65_536, 1]) {
      const stream = createCipheriv("chacha20", key, Buffer.alloc(16)).update(Buffer.alloc(32 + length));
      expect(Buffer.from(getRandomValues(new Uint8Array(length)))).toEqual(stream.subarray(32));
      key = stream.subarray(0, 32);
    }
  });
});
