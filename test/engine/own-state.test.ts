import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import type { Delivery, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { OwnState, type StagedState } from "../../runtime/engine/own-state/own-state.ts";
import type { Batch } from "../../runtime/journal/batch.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, done, failure, inAnHour, manifest, quiet } from "./fixture.ts";

const limit = 64 * 1024;

/** Returns an attempt's view of its function's state, as access creates it. */
function stateOf(delivery: Delivery): StagedState {
  delivery.staged ??= delivery.state?.stage();
  if (!delivery.staged) throw new TypeError("the delivery has no state");
  return delivery.staged;
}

/** A handler that appends the object's name to the entry `seen`. */
function append(delivery: Delivery): Outcome {
  const state = stateOf(delivery);
  state.put("seen", JSON.stringify([...JSON.parse(state.get("seen") ?? "[]"), delivery.object.name]), limit);
  return done;
}

const seenIn = (it: DispatchFixture): unknown => JSON.parse(it.store.ownState("copy").get("seen") ?? "[]");

/** A store that keeps the batches that reach it, and can stop accepting them. */
class WatchedStore extends MemoryStore {
  readonly batches: Batch[] = [];
  isStuck = false;

  override async commit(batch: Batch): Promise<readonly string[]> {
    if (this.isStuck) return new Promise(() => {});
    this.batches.push(batch);
    return super.commit(batch);
  }
}

describe("a function's own state", () => {
  it("has what a handler wrote in the commit that has its event's end, and after a restart", async () => {
    const store = new WatchedStore();
    const it = await (await DispatchFixture.open({ store, disk: store.disk })).listed();
    it.runner.answer = append;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    const [written, ...more] = store.batches.filter(({ state }) => state.length > 0);
    expect(more).toEqual([]);
    expect(written?.state).toEqual([{ function: "copy", key: "seen", value: '["a"]' }]);
    expect(written?.known.map(({ key }) => key)).toEqual(["team-a/a"]);
    const next = await it.restart();
    next.subscription.change(change("Added", "b", 12));
    await quiet(next.runner);
    await next.clock.advance(1_000);
    expect(seenIn(next)).toEqual(["a", "b"]);
  });

  it("is charged to its function where a write of it is large", async () => {
    for (const [length, charged] of [
      [1_000, undefined],
      [1_000_000, 0.004],
    ] as const) {
      const it = await (await DispatchFixture.open()).listed();
      it.runner.answer = (delivery) => {
        stateOf(delivery).put("all", JSON.stringify("x".repeat(length)), 2 * length);
        return done;
      };
      it.subscription.change(change("Added", "a", 11));
      await quiet(it.runner);
      await it.clock.advance(1_000);
      const seconds = it.function.status().parentSeconds.get("rows");
      if (charged === undefined) expect(seconds).toBeUndefined();
      else expect(seconds).toBeGreaterThan(charged);
    }
  });

  it("is as before for the attempt that follows a failed one, and for a dead letter's replay", async () => {
    const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
    const found: unknown[] = [];
    it.runner.answer = (delivery) => {
      found.push(stateOf(delivery).get("seen"));
      append(delivery);
      return failure();
    };
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await it.clock.advance(60_000);
    await quiet(it.runner);
    expect(found).toEqual([undefined, undefined, undefined]);
    expect(it.outcomes.get("dead_letter")).toBe(1);
    expect(it.store.ownState("copy").size).toBe(0);
  });

  it("is as before the attempt if the process dies before the event's end is saved", async () => {
    const store = new WatchedStore();
    const it = await (await DispatchFixture.open({ store, disk: store.disk })).listed();
    it.runner.answer = append;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    it.runner.answer = (delivery) => {
      store.isStuck = true;
      return append(delivery);
    };
    it.subscription.change(change("Added", "b", 12));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect(seenIn(it)).toEqual(["a"]);
    const found: unknown[] = [];
    const next = await it.restart();
    next.runner.answer = (delivery) => {
      found.push([delivery.object.name, delivery.redelivered, stateOf(delivery).get("seen")]);
      return append(delivery);
    };
    next.subscription.change(change("Added", "b", 12));
    await quiet(next.runner);
    await next.clock.advance(1_000);
    expect(found).toEqual([["b", true, '["a"]']]);
    expect(seenIn(next)).toEqual(["a", "b"]);
  });

  it("shows each event what the one before it wrote, though neither is saved yet", async () => {
    const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
    it.runner.answer = append;
    for (const [index, name] of [..."abcdefgh"].entries()) it.subscription.change(change("Added", name, 11 + index));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect(seenIn(it)).toEqual([..."abcdefgh"]);
  });

  it("has the write of the attempt that ended last, of those that ran at the same time", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = (delivery) => {
      append(delivery);
      return undefined;
    };
    for (const [index, name] of [..."ab"].entries()) it.subscription.change(change("Added", name, 11 + index));
    await quiet(it.runner);
    await it.runner.end("b");
    await it.runner.end("a");
    await it.clock.advance(1_000);
    expect(seenIn(it)).toEqual(["a"]);
  });

  it("stays through a reload, and is gone once the function has been gone for seven days", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = append;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await it.dispatcher.remove("copy", { retire: false });
    await it.dispatcher.function(manifest(), { usesOldObject: false });
    expect(seenIn(it)).toEqual(["a"]);
    await it.dispatcher.remove("copy", { retire: true });
    await it.clock.advance(6 * 24 * 3_600_000);
    await it.store.purge(it.clock.now() - 7 * 24 * 3_600_000);
    expect(seenIn(it)).toEqual(["a"]);
    await it.clock.advance(2 * 24 * 3_600_000);
    await it.store.purge(it.clock.now() - 7 * 24 * 3_600_000);
    expect(it.store.ownState("copy").size).toBe(0);
    await it.restart({ manifest: manifest(inAnHour) });
  });
});

test("a batch's writes are saved with its first event that succeeded, and not at all if it failed", async () => {
  const batch = { maxSize: 2, maxWaitMs: 100 };
  const store = new WatchedStore();
  const policy = manifest({ batch, concurrency: 1, ...inAnHour });
  const it = await (await DispatchFixture.open({ store, disk: store.disk, manifest: policy })).listed();
  const outcomes: Outcome[] = [{ ...done, failed: [0] } as Outcome, failure()];
  it.runner.answer = (delivery) => {
    const state = stateOf(delivery);
    state.put("n", String(Number(state.get("n") ?? 0) + 1), limit);
    return outcomes.shift() ?? failure();
  };
  for (const [index, name] of [..."abcd"].entries()) it.subscription.change(change("Added", name, 11 + index));
  await quiet(it.runner);
  await it.clock.advance(1_000);
  const written = store.batches.filter(({ state }) => state.length > 0);
  expect(written.map(({ state, known }) => [state[0]?.value, known.map(({ key }) => key)])).toEqual([
    ["1", ["team-a/b"]],
  ]);
});

/** One step of an attempt. */
type Step =
  | { readonly type: "put"; readonly attempt: number; readonly key: string; readonly value: string | undefined }
  | { readonly type: "end"; readonly attempt: number; readonly kept: boolean };

test("any attempts that overlap see the ended ones and their own writes, and no other", () => {
  const attempt = fc.integer({ min: 0, max: 2 });
  const key = fc.constantFrom("a", "b", "ö");
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({
      type: fc.constant("put" as const),
      attempt,
      key,
      value: fc.oneof(fc.integer({ min: 0, max: 99 }).map(String), fc.constant(undefined)),
    }),
    fc.record({ type: fc.constant("end" as const), attempt, kept: fc.boolean() }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const state = new OwnState("copy", new Map());
      const ended = new Map<string, string>();
      const open = new Map<number, { staged: StagedState; own: Map<string, string | undefined> }>();
      for (const each of steps) {
        const it = open.get(each.attempt) ?? { staged: state.stage(), own: new Map() };
        open.set(each.attempt, it);
        if (each.type === "put") {
          it.staged.put(each.key, each.value, limit);
          it.own.set(each.key, each.value);
        } else {
          it.staged.end(each.kept);
          open.delete(each.attempt);
          if (each.kept)
            for (const [name, value] of it.own) value === undefined ? ended.delete(name) : ended.set(name, value);
        }
        for (const { staged, own } of open.values()) {
          const seen = new Map([...new Map([...ended, ...own])].filter(([, value]) => value !== undefined));
          for (const name of ["a", "b", "ö"]) expect(staged.get(name)).toBe(seen.get(name));
          expect(staged.keys("")).toEqual([...seen.keys()].toSorted());
        }
      }
      expect(new Map(state)).toEqual(ended);
    }),
  );
});

describe("the limit of a function's own state", () => {
  const text = (bytes: number): string => JSON.stringify("x".repeat(bytes - 2));

  it("refuses the write that would exceed it, with the size that it would have, and changes nothing", () => {
    const staged = new OwnState("copy", new Map([["a", text(500)]])).stage();
    staged.put("b", text(400), 1_024);
    expect(() => staged.put("c", text(300), 1_024)).toThrow(/WF_STATE_FULL.*1299 bytes.*1024/s);
    expect(staged.keys("")).toEqual(["a", "b"]);
    staged.put("a", text(100), 1_024);
    staged.put("c", text(300), 1_024);
    expect(staged.keys("")).toEqual(["a", "b", "c"]);
  });

  it("counts what other attempts that run may add, until they have ended", () => {
    const state = new OwnState("copy", new Map());
    const [one, other] = [state.stage(), state.stage()];
    one.put("a", text(600), 1_024);
    expect(() => other.put("b", text(600), 1_024)).toThrow(/WF_STATE_FULL/);
    one.end(false);
    other.put("b", text(600), 1_024);
  });

  it("that an edit lowered below what is stored still lets a handler delete and shrink entries", () => {
    const staged = new OwnState(
      "copy",
      new Map([
        ["a", text(2_000)],
        ["b", text(2_000)],
      ]),
    ).stage();
    staged.put("a", text(1_500), 1_024);
    staged.put("b", undefined, 1_024);
    expect(() => staged.put("c", "1", 1_024)).toThrow(/WF_STATE_FULL/);
  });
});
