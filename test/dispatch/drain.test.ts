import { describe, expect, it } from "vitest";
import { emptyBatch } from "../../runtime/checkpoint/batch.ts";
import { MemoryStore } from "../../runtime/checkpoint/memory.ts";
import { change, Harness, quiet } from "./harness.ts";

/** A store whose disk is full. */
class FullDisk extends MemoryStore {
  full = false;

  override async commit(batch = emptyBatch): Promise<void> {
    if (this.full) throw new Error("disk full");
    await super.commit(batch);
  }
}

describe("a drain", () => {
  it("ends within its grace though a handler does not, and says so", async () => {
    const it = await (await Harness.open()).listed();
    it.runner.answer = () => undefined;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const drained = it.dispatcher.drain(25_000);
    await it.clock.advance(25_000);
    expect(await drained).toBe(false);
  });

  it("ends two seconds after its grace at most though the disk is full, and says so", async () => {
    const store = new FullDisk();
    const it = await (await Harness.open({ store })).listed();
    store.full = true;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const drained = it.dispatcher.drain(25_000);
    await it.clock.advance(25_000);
    await it.clock.advance(2_000);
    expect(await drained).toBe(false);
    expect(it.runner.told).toEqual([]);
  });
});
