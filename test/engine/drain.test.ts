import { describe, expect, it } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, quiet } from "./fixture.ts";

/** A store whose disk is full. */
class FullDisk extends MemoryStore {
  full = false;

  override async commit(batch = emptyBatch): Promise<readonly string[]> {
    if (this.full) throw new Error("disk full");
    return super.commit(batch);
  }
}

/** A store whose disk breaks at the end. */
class BrokenDisk extends MemoryStore {
  override sync(): Promise<void> {
    return Promise.reject(new Error("input/output error"));
  }
}

/** A store that another runtime takes over. */
class TakenStore extends MemoryStore {
  taken = false;

  override async commit(batch = emptyBatch): Promise<readonly string[]> {
    if (this.taken) throw new WatchfireError("WF_CHECKPOINT_FENCED", { what: "its fence is no longer 1" });
    return super.commit(batch);
  }
}

describe("a store that another runtime took over", () => {
  it("ends dispatching for good, with the reason: no handler begins after it", async () => {
    const store = new TakenStore();
    const { promise: lost, resolve } = Promise.withResolvers<WatchfireError>();
    const it = await (await DispatchFixture.open({ store, onLost: resolve })).listed();
    store.taken = true;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    expect((await lost).code).toBe("WF_CHECKPOINT_FENCED");
    store.taken = false;
    it.subscription.change(change("Added", "b", 12));
    await it.clock.advance(60_000);
    expect(it.runner.told).toEqual([]);
  });
});

describe("a function that is removed", () => {
  it("goes within seconds though the store takes nothing, and leaves what may make room in it", async () => {
    const store = new FullDisk();
    const it = await (await DispatchFixture.open({ store })).listed();
    store.full = true;
    it.subscription.change(change("Added", "a", 11));
    await it.clock.advance(1_000);
    let gone = false;
    const removed = it.dispatcher.remove("copy", { retire: true }).then(() => {
      gone = true;
    });
    for (let seconds = 0; seconds < 10; seconds++) await it.clock.advance(1_000);
    expect([gone, await store.views()]).toEqual([true, []]);
    await removed;
  });
});

describe("a drain", () => {
  it("ends within its grace though a handler does not, and says so", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = () => undefined;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const drained = it.dispatcher.drain(25_000);
    await it.clock.advance(25_000);
    expect(await drained).toBe(false);
  });

  it("ends three seconds after its grace at most though the disk is full, and says so", async () => {
    const store = new FullDisk();
    const it = await (await DispatchFixture.open({ store })).listed();
    store.full = true;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const drained = it.dispatcher.drain(25_000);
    await it.clock.advance(25_000);
    await it.clock.advance(3_000);
    expect(await drained).toBe(false);
    expect(it.runner.told).toEqual([]);
  });

  it("ends where the last write to disk fails, and says so: no end that counts as clean, and a line of why", async () => {
    const it = await (await DispatchFixture.open({ store: new BrokenDisk() })).listed();
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const drained = it.dispatcher.drain(25_000);
    await it.clock.advance(1_000);
    expect(await drained).toBe(false);
    expect(it.warnings).toContainEqual({ error: "input/output error", msg: "the last checkpoints could not be saved" });
    expect(it.clock.timers).toBe(0);
  });
});
