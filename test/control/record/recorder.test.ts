import { describe, expect, it } from "vitest";
import { Redactor } from "../../../runtime/access/redactor.ts";
import { Recorder } from "../../../runtime/control/record/recorder.ts";
import { batchDelivery } from "../../../runtime/engine/batch/batching-runner.ts";
import { type Delivery, run } from "../../../runtime/engine/delivery/delivery.ts";
import { promisedRunner } from "../../engine/promised-runner.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const delivery = (name: string, more: Partial<Delivery> = {}): Delivery => ({
  function: "greet",
  trigger: "settings",
  id: `${name}/1/Added`,
  type: "Added",
  object: { apiVersion: "v1", kind: "ConfigMap", namespace: "demo", name, uid: "u" },
  resourceVersion: "1",
  attempt: 1,
  redelivered: false,
  flags: {},
  body: Buffer.from(JSON.stringify({ metadata: { name } })),
  timeoutMs: 1000,
  ...more,
});

function world() {
  const clock = new VirtualClock();
  const recorder = new Recorder(clock, (_, data) => JSON.parse(JSON.stringify(data).replaceAll("own-value", "[own]")));
  const begun: string[] = [];
  const inner = promisedRunner(({ id }) => {
    begun.push(id);
    return { type: "ok", durationMs: 1 };
  });
  return { clock, recorder, begun, runner: recorder.listening(inner) };
}

describe("a recording", () => {
  it("has what the function alone is given from then on, as many as it asks for, and ends", async () => {
    const { recorder, runner, begun } = world();
    await run(runner, delivery("before"));
    const { recording = "" } = await recorder.ask("greet", { count: 2 });
    await run(runner, delivery("a", { function: "other" }));
    for (const name of ["a", "own-value", "c"]) await run(runner, delivery(name));
    const answer = await recorder.ask("greet", { recording, wait: 0 });
    expect(answer).toEqual({
      left: 0,
      taken: [
        {
          what: "added",
          object: "a",
          fixture: {
            event: {
              id: "a/1/Added",
              trigger: "settings",
              type: "Added",
              attempt: 1,
              redelivered: false,
              resourceVersion: "1",
              object: { metadata: { name: "a" } },
            },
          },
        },
        { what: "added", object: "own-value", fixture: { event: expect.objectContaining({ id: "[own]/1/Added" }) } },
      ],
    });
    expect(begun).toHaveLength(5);
    await expect(recorder.ask("greet", { recording, wait: 0 })).rejects.toThrow("WF_RUNTIME_NOT_RECORDED");
  });

  it("has whole numbers as they came, beyond 2^53 as well", async () => {
    const clock = new VirtualClock();
    const redactor = new Redactor();
    redactor.learn("greet", { secrets: ["abcdefgh"], configuration: [] });
    const recorder = new Recorder(clock, (name, data) => redactor.redactData(name, data));
    const { recording = "" } = await recorder.ask("greet", {});
    const body = Buffer.from('{"metadata":{"name":"a"},"spec":{"ids":[9007199254740993]}}');
    await run(recorder.listening(promisedRunner(() => ({ type: "ok", durationMs: 1 }))), delivery("a", { body }));
    const { taken } = await recorder.ask("greet", { recording, wait: 0 });
    expect(JSON.stringify(taken)).toContain('"spec":{"ids":[9007199254740993]}');
  });

  it("has of a reconciler its key, object and causes, of a batch its events, of a schedule its time", async () => {
    const { recorder, runner } = world();
    const { recording = "" } = await recorder.ask("greet", {});
    const causes = [{ type: "Resync" as const }];
    await run(runner, delivery("a", { causes }));
    await run(runner, delivery("gone", { causes, body: Buffer.alloc(0) }));
    await run(runner, batchDelivery([delivery("a"), delivery("b")]));
    const scheduledFor = "2026-03-29T01:00:00.000Z";
    await run(runner, delivery("nightly", { type: "Scheduled", flags: { scheduledFor }, body: Buffer.from("null") }));
    const { taken } = await recorder.ask("greet", { recording, wait: 0 });
    const key = { namespace: "demo", name: "a" };
    expect(taken.map(({ what }) => what)).toEqual(["run", "run", "batch", "scheduled"]);
    expect(taken.map(({ fixture }) => fixture)).toEqual([
      { run: { key, object: { metadata: { name: "a" } }, causes, attempt: 1, redelivered: false } },
      { run: { key: { ...key, name: "gone" }, causes, attempt: 1, redelivered: false } },
      { events: [expect.objectContaining({ id: "a/1/Added" }), expect.objectContaining({ id: "b/1/Added" })] },
      { event: expect.not.objectContaining({ object: expect.anything() }) },
    ]);
    expect(taken[3]?.fixture).toMatchObject({ event: { type: "Scheduled", scheduledFor } });
  });

  it("waits for the next, and no longer than it was asked to", async () => {
    const { clock, recorder, runner } = world();
    const { recording = "" } = await recorder.ask("greet", {});
    const next = recorder.ask("greet", { recording, wait: 10 });
    await run(runner, delivery("a"));
    expect((await next).taken).toHaveLength(1);
    const none = recorder.ask("greet", { recording, wait: 10 });
    await clock.advance(10_000);
    expect(await none).toEqual({ taken: [], left: 0, recording });
  });

  it("takes no more runs than fit, though their objects are gone", async () => {
    const { recorder, runner } = world();
    const { recording = "" } = await recorder.ask("greet", {});
    const causeOf = (name: string) => ({ type: "Deleted" as const, trigger: "settings", namespace: "demo", name });
    const causes = Array.from({ length: 16 }, (_, index) => causeOf(`${index}-${"x".repeat(200)}`));
    const gone = delivery("gone", { causes, body: Buffer.alloc(0) });
    for (let n = 0; n < 2_000; n++) await run(runner, gone);
    const { taken, left } = await recorder.ask("greet", { recording, wait: 0 });
    expect(JSON.stringify(taken).length).toBeLessThan(4 * 2 ** 20);
    expect([taken.length > 500, taken.length + left]).toEqual([true, 2_000]);
  });

  it("stands in no handler's way, where an object is too deep to be copied", async () => {
    const { recorder, runner, begun } = world();
    const { recording = "" } = await recorder.ask("greet", {});
    const depth = 10_000;
    await run(runner, delivery("deep", { body: Buffer.from(`${"[".repeat(depth)}${"]".repeat(depth)}`) }));
    expect(begun).toEqual(["deep/1/Added"]);
    expect(await recorder.ask("greet", { recording, wait: 0 })).toEqual({ taken: [], left: 1, recording });
  });

  it("leaves out what is too large, holds a few megabytes at most, and is forgotten once nobody asks", async () => {
    const { clock, recorder, runner } = world();
    const { recording = "" } = await recorder.ask("greet", {});
    const large = (bytes: number) => Buffer.from(JSON.stringify({ text: "x".repeat(bytes) }));
    await run(runner, delivery("huge", { body: large(2 ** 20) }));
    for (let n = 0; n < 6; n++) await run(runner, delivery(`large-${n}`, { body: large(2 ** 20 - 2_000) }));
    const { taken, left } = await recorder.ask("greet", { recording, wait: 0 });
    expect([taken.length, left]).toEqual([4, 3]);
    for (let more = 1; more < 4; more++) await recorder.ask("greet", {});
    await expect(recorder.ask("greet", {})).rejects.toThrow("4 recordings are running already");
    await expect(recorder.ask("other", { recording, wait: 0 })).rejects.toThrow("no such recording");
    await clock.advance(30_001);
    await expect(recorder.ask("greet", { recording, wait: 0 })).rejects.toThrow("WF_RUNTIME_NOT_RECORDED");
    await recorder.ask("greet", {});
  });
});
