import { expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { readUpFrame } from "../../runtime/sandbox/host/frames.ts";
import { frameType } from "../../runtime/sandbox/wire.ts";
import { fixtureForTest } from "./fixture.ts";

test("an attempt has the CPU time that it used, without the time that it waited, and the heap of its isolate", async () => {
  const it = fixtureForTest();
  it.answer = async () => {
    await new Promise((resolve) => systemClock.after(200, () => resolve(undefined)));
    return { ok: true, json: "{}" };
  };
  await it.load(
    "busy",
    `export default async (event, ctx) => {
      if (event.resourceVersion === "8") await ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "b" });
      else for (const end = Date.now() + 60; Date.now() < end; );
    };`,
    { cpuMs: 5_000 },
  );
  const [busy, idle] = [it.delivery("busy"), it.delivery("busy", { resourceVersion: "8" })];
  await run(it.sandbox, busy);
  await run(it.sandbox, idle);
  // A loaded machine gives the thread less than its 60 ms.
  expect(busy.cpuMs).toBeGreaterThan(5);
  expect(busy.cpuMs).toBeLessThan(500);
  expect(idle.cpuMs).toBeLessThan((busy.cpuMs ?? 0) / 2);
  expect(idle.heapBytes).toBeGreaterThan(100_000);
});

test("a frame whose use is no pair of numbers is refused", () => {
  const body = Buffer.from("[[],[],[],[],-1,[],0]\n");
  const read = (header: object) => readUpFrame({ type: frameType.drained, header: JSON.stringify(header), body });
  expect(read({ functionId: 1, realm: 1 })).toMatchObject({ realm: 1 });
  expect(read({ functionId: 1, realm: 1, used: [12, 0] })).toMatchObject({ used: [12, 0] });
  for (const used of [[1], [1, -1], [1, 2, 3], [1.5, 2], "12", null]) {
    expect(read({ functionId: 1, realm: 1, used }), JSON.stringify(used)).toBeUndefined();
  }
  expect(read({ functionId: 1, realm: 1, other: 1 })).toBeUndefined();
});
