import { expect, test } from "vitest";
import type { Delivery, DeliveryListener, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { RecentBodies } from "../../runtime/history/recent-bodies.ts";
import { loggedRunner, mostBodyBytes } from "../../runtime/observe/run-log.ts";
import { endedRun, failure, historyOf, StandingClock } from "./collected.ts";

const bodyOf = (size: number) => Buffer.alloc(size, "x");

/** A runner with a history, whose attempts begin and end at once. */
function collecting() {
  const { history } = historyOf({ clock: new StandingClock() });
  const run = (over: Partial<Delivery>, outcome: Outcome = { type: "ok", durationMs: 1 }) => {
    const inner = {
      give: (_: Delivery, listener: DeliveryListener) => {
        listener.begins();
        listener.ended(outcome);
      },
      recall: () => {},
    };
    const log = { isLevelEnabled: () => false, warn: () => {} } as never;
    const redactor = { redact: (_: string, text: string) => text } as never;
    const kept = { collector: history.runs, clock: new StandingClock() };
    const delivery = { ...endedRun(), body: Buffer.from("{}"), ...over } as never;
    loggedRunner(inner, log, redactor, "debug", kept).give(delivery, { begins: () => {}, ended: () => {} });
  };
  return { history, run };
}

test("a run's objects are found by its id, those of its last attempt", async () => {
  const { history, run } = collecting();
  run({ body: Buffer.from('{"n":1}') }, failure);
  run({ body: Buffer.from('{"n":2}'), oldBody: Buffer.from('{"n":1}'), attempt: 2 });
  const found = await history.received("greet", endedRun().id);
  expect([found?.attempt, String(found?.body), String(found?.oldBody)]).toEqual([2, '{"n":2}', '{"n":1}']);
  expect(await history.received("greet", "another")).toBeUndefined();
});

test("objects of Secrets are not kept, and bodies are copies", async () => {
  const { history, run } = collecting();
  const object = { ...endedRun().object, kind: "Secret" };
  run({ object, id: "secret", body: bodyOf(10) });
  const body = Buffer.from("before");
  run({ id: "plain", body });
  body.write("after!");
  expect((await history.received("greet", "secret"))?.body).toBeUndefined();
  expect(String((await history.received("greet", "plain"))?.body)).toBe("before");
});

test("between two batches bodies have a limit, of which half is for attempts that failed", async () => {
  const { history, run } = collecting();
  const body = bodyOf(mostBodyBytes / 4);
  for (const id of ["a", "b", "c"]) run({ id, body });
  run({ id: "d", body }, failure);
  const kept = history.runs.ended.map((each) => [each.id, each.body !== undefined]);
  expect(kept).toEqual([
    ["a", true],
    ["b", true],
    ["c", false],
    ["d", true],
  ]);
  await history.flush();
  run({ id: "e", body });
  expect(history.runs.ended.at(-1)?.body).toBeDefined();
});

test("the oldest bodies of the largest share give way, and failures have a share of their own", () => {
  const bodies = new RecentBodies(50_000);
  const add = (id: string, name: string, outcome: Outcome = { type: "ok", durationMs: 1 }) =>
    bodies.add([endedRun({ id, function: name, outcome: outcome as never, body: bodyOf(1_000) })]);
  add("failed", "busy", failure);
  add("calm", "calm");
  for (let n = 0; n < 100; n++) add(`busy-${n}`, "busy");
  const has = (name: string, id: string) => bodies.find(name, id) !== undefined;
  expect([has("busy", "failed"), has("calm", "calm"), has("busy", "busy-99"), has("busy", "busy-50")]).toEqual([
    true,
    true,
    true,
    false,
  ]);
});

test("an attempt that was interrupted after it began is a run, with its calls", async () => {
  const { history, run } = collecting();
  run({ cpuMs: 12.5, heapBytes: 1_000_000 }, { type: "interrupted" });
  const [found] = await history.find({ limit: 10, outcome: "interrupted" });
  expect(found).toMatchObject({ outcome: "interrupted", took: 0, cpu: 12.5, heap: 1_000_000 });
  expect(await history.find({ limit: 10, outcome: "any-failure" })).toEqual([]);
});
