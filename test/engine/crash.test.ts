import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Outcome } from "../../runtime/engine/delivery/delivery.ts";
import type { Batch } from "../../runtime/journal/batch.ts";
import type { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, done, manifest, quiet } from "./fixture.ts";

/** A store whose process is killed at one of its commits: just before or just after it reaches the disk. */
class DyingStore extends MemoryStore {
  dead = false;
  private commits = 0;
  private readonly last: number;
  private readonly reaches: boolean;

  constructor(last: number, reaches: boolean, disk?: MemoryDisk) {
    super(disk);
    this.last = last;
    this.reaches = reaches;
  }

  override async commit(batch: Batch): Promise<readonly string[]> {
    this.commits++;
    const arrives = !this.dead && (this.commits < this.last || this.reaches);
    const letters = arrives ? await super.commit(batch) : [];
    this.dead ||= this.commits === this.last;
    return this.dead ? new Promise(() => {}) : letters;
  }
}

/** Runs `live` once for each of its commits, and kills it at that commit. Yields the results of `live`. */
async function* deaths<T>(live: (store: DyingStore) => Promise<T>) {
  for (const reaches of [false, true]) {
    for (let last = 1; ; last++) {
      const store = new DyingStore(last, reaches);
      const life = await live(store);
      if (!store.dead) break;
      yield { life, death: `commit ${last}, ${reaches ? "after" : "before"} it reached the disk` };
    }
  }
}

const policy = manifest({ concurrency: 2 });
const permanent: Outcome = { type: "permanent", durationMs: 1, error: { name: "Error", message: "no", stack: "" } };

/**
 * Checks that every repeated delivery is flagged, and that after the last delivery of a name no older one follows unflagged.
 */
function expectFlagged(it: DispatchFixture, death: string): void {
  const seen = new Set<string>();
  for (const { id, redelivered } of it.runner.deliveries) {
    expect(redelivered || !seen.has(id), `${id} told again without a flag, died at ${death}`).toBe(true);
    seen.add(id);
  }
}

async function liveOn(store: MemoryStore, disk: MemoryDisk): Promise<DispatchFixture> {
  const it = await DispatchFixture.open({ store, disk, manifest: policy });
  it.runner.answer = ({ object }) => (object.name === "poison" ? permanent : done);
  return it;
}

describe("a process that is killed", () => {
  it("at any point of its first list tells of every object, and of none twice in silence", async () => {
    const items = ["a", "b", "c", "d", "e"].map((name, index) => change("Added", name, 9 - index));
    const life = async (store: DyingStore) => {
      const it = await liveOn(store, store.disk);
      await it.list(20, items, "initial");
      it.subscription.bookmark(resourceVersion("21"));
      await quiet(it.runner);
      await it.clock.advance(1_000);
      return it;
    };
    let lives = 0;
    for await (const { life: it, death } of deaths(life)) {
      lives++;
      const settled = [...(it.disk.views.get(1)?.known.keys() ?? [])];
      const before = it.runner.deliveries.length;
      const next = await it.restart({ manifest: policy });
      if (next.subscription.resumeFrom === undefined) await next.list(30, items, "initial");
      await quiet(next.runner);
      const again = next.runner.deliveries.slice(before).map(({ object }) => `${object.namespace}/${object.name}`);
      expect(again.toSorted(), death).toEqual(
        items.map(({ meta }) => `team-a/${meta.name}`).filter((key) => !settled.includes(key)),
      );
      expectFlagged(next, death);
      expect(
        next.runner.deliveries.every(({ flags }) => flags.initial),
        death,
      ).toBe(true);
    }
    expect(lives).toBeGreaterThan(5);
  });

  it("at any point of handling changes delivers each of them, in order, and flags each repetition", async () => {
    const history = [
      change("Modified", "a", 11),
      change("Added", "poison", 12),
      change("Modified", "a", 13),
      change("Deleted", "b", 14),
      change("Added", "b", 15, { uid: "uid-b2" }),
    ];
    const replay = (it: DispatchFixture) => {
      const from = Number(it.subscription.resumeFrom ?? 0);
      for (const each of history) if (Number(each.meta.resourceVersion) > from) it.subscription.change(each);
      it.subscription.bookmark(resourceVersion("20"));
    };
    const life = async (store: DyingStore) => {
      const it = await liveOn(store, store.disk);
      await it.list(9, [change("Added", "a", 5), change("Added", "b", 6)], "initial");
      await quiet(it.runner);
      await it.clock.advance(1_000);
      replay(it);
      await quiet(it.runner);
      await it.clock.advance(1_000);
      return it;
    };
    let lives = 0;
    for await (const { life: it, death } of deaths(life)) {
      lives++;
      const next = await it.restart({ manifest: policy });
      if (next.subscription.resumeFrom === undefined) {
        await next.list(9, [change("Added", "a", 5), change("Added", "b", 6)], "initial");
      }
      replay(next);
      await quiet(next.runner);
      await next.clock.advance(1_000);
      expectFlagged(next, death);
      const told = new Map<string, string[]>();
      for (const { type, object, resourceVersion, redelivered } of next.runner.deliveries) {
        const line = `${type}@${resourceVersion}`;
        const lines = told.get(object.name) ?? [];
        if (!(redelivered && lines.includes(line))) told.set(object.name, [...lines, line]);
      }
      expect(Object.fromEntries(told), death).toEqual({
        a: ["Added@5", "Modified@11", "Modified@13"],
        b: ["Added@6", "Deleted@14", "Added@15"],
        poison: ["Added@12"],
      });
      expect(
        (await next.store.deadLetters()).map(({ id }) => id),
        death,
      ).toEqual(["settings:uid-poison/12/Added"]);
      expect(next.subscription.lowWaterMark, death).toBe("20");
    }
    expect(lives).toBeGreaterThan(8);
  });
});
