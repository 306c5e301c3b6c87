// A cluster that is restored with newer resourceVersions than any it gave before: its list is newer than the known state, but its
// objects are older.
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import type { Trigger } from "../../runtime/manifest/function.ts";
import { change, DispatchFixture, done, manifest, quiet, trigger } from "./fixture.ts";

/** A resourceVersion far beyond all that were given before. */
const bumped = 1_000_000_009;

/** Handles everything up to this resourceVersion. */
async function reach(it: DispatchFixture, at: number | string): Promise<void> {
  it.subscription.bookmark(resourceVersion(String(at)));
  await quiet(it.runner);
  await it.clock.advance(1_000);
}

/** A function that knows `a` in its second state, at 12, and whose checkpoint is 20. */
async function knowing(over: Partial<Trigger> = {}): Promise<DispatchFixture> {
  const it = await DispatchFixture.open({ manifest: manifest({}, [trigger(over)]) });
  await it.list(9, [change("Added", "a", 5)], "initial");
  it.subscription.change(change("Modified", "a", 12));
  await reach(it, 20);
  return it;
}

/**
 * True if a list that is read after a loss of history proves the restore. The list is then aborted, as a source does.
 */
function proves(it: DispatchFixture, at: number | string, items: readonly Change[]): boolean {
  const receiver = it.subscription.list("relist", it.subscription.resumeFrom);
  for (const item of items) receiver.item(item);
  const isProof = receiver.provesRewind?.(resourceVersion(String(at))) ?? false;
  receiver.abort();
  return isProof;
}

/** Lists again as a source does after a list that proves a restore. */
async function relist(it: DispatchFixture, at: number, items: readonly Change[]): Promise<void> {
  const isProof = proves(it, at, items);
  if (isProof) it.subscription.rewound();
  await it.list(at, items, isProof ? "rv-rewind" : "relist");
  await quiet(it.runner);
}

describe("a list proves a restore", () => {
  it("where it is at or above all that is known and shows an older state of an object", async () => {
    expect(proves(await knowing(), bumped, [change("Added", "a", 5)])).toBe(true);
    expect(proves(await knowing(), 20, [change("Added", "a", 5)])).toBe(true);
  });

  it("where it shows an object that was deleted later, while that is on record", async () => {
    const it = await knowing();
    it.subscription.change(change("Deleted", "a", 21));
    await quiet(it.runner);
    expect(proves(it, bumped, [change("Added", "a", 12)])).toBe(true);
  });

  it("where the newer state, or the deletion, still waits for its handler", async () => {
    for (const next of [change("Modified", "a", 21), change("Deleted", "a", 21)]) {
      const it = await knowing();
      it.runner.answer = () => undefined;
      it.subscription.change(next);
      await quiet(it.runner);
      expect(proves(it, bumped, [change("Added", "a", 12)])).toBe(true);
    }
  });

  it("where a handler had begun on the newer state when the process died", async () => {
    const before = await knowing();
    before.runner.answer = () => undefined;
    before.subscription.change(change("Modified", "a", 21));
    await quiet(before.runner);
    expect(proves(await before.restart(), bumped, [change("Added", "a", 12)])).toBe(true);
  });

  it("and not where it lags itself", async () => {
    expect(proves(await knowing(), 11, [change("Added", "a", 5)])).toBe(false);
  });

  it("and not where it shows what is known, what is newer, or an object of the same name that is another", async () => {
    expect(proves(await knowing(), bumped, [change("Added", "a", 12)])).toBe(false);
    expect(proves(await knowing(), bumped, [change("Added", "a", 30), change("Added", "b", 31)])).toBe(false);
    expect(proves(await knowing(), bumped, [change("Added", "a", 5, { uid: "uid-other" })])).toBe(false);
    expect(proves(await knowing(), bumped, [])).toBe(false);
  });

  it.each([
    ["the list's", "opaque", 5],
    ["the object's", bumped, "opaque"],
  ])("and not where a resourceVersion cannot be compared: %s", async (_, at, rv) => {
    expect(proves(await knowing(), at, [change("Added", "a", rv)])).toBe(false);
  });

  it("and not of what was left out meanwhile by another selector, and is chosen again", async () => {
    const open = (before: DispatchFixture, labelSelector: string) =>
      before.restart({ manifest: manifest({}, [trigger({ labelSelector })]), selection: labelSelector });
    const narrow = await open(await knowing(), "tier=gold");
    narrow.runner.answer = () => undefined;
    await narrow.list(30, []);
    await quiet(narrow.runner);
    expect(narrow.runner.told.at(-1)).toBe("Deleted a@12");
    expect(proves(await open(narrow, ""), 40, [change("Added", "a", 12)])).toBe(false);
  });

  it("and not again, once the restore is known", async () => {
    const it = await knowing();
    it.subscription.rewound();
    expect(proves(it, bumped, [change("Added", "a", 5)])).toBe(false);
  });
});

describe("after a restore that a list has proved", () => {
  const undone = [change("Added", "a", 5), change("Added", "back", 6)];

  /**
   * A function that knows `a` in its second state, the deletion of `back`, and `since`, which the backup does not contain.
   */
  async function restored(over: Partial<Trigger> = {}): Promise<DispatchFixture> {
    const it = await DispatchFixture.open({ manifest: manifest({}, [trigger(over)]) });
    await it.list(9, [change("Added", "a", 5), change("Added", "back", 6)], "initial");
    for (const each of [change("Modified", "a", 12), change("Deleted", "back", 13), change("Added", "since", 14)]) {
      it.subscription.change(each);
    }
    await reach(it, 20);
    return it;
  }
  const netChanges = ["Deleted since@14", "Modified a@5", "Added back@6"];

  it("each net change is told once, as a rewind, under an id that no event had before", async () => {
    const it = await restored();
    const before = it.runner.deliveries.length;
    await relist(it, bumped, undone);
    const news = it.runner.deliveries.slice(before);
    expect(it.runner.told.slice(before)).toEqual(netChanges);
    expect(news.map(({ flags }) => flags.reason)).toEqual(["rv-rewind", "rv-rewind", "rv-rewind"]);
    const ids = it.runner.deliveries.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("it is told after a restart as well", async () => {
    const it = await (await restored()).restart();
    const before = it.runner.deliveries.length;
    await relist(it, bumped, undone);
    expect(it.runner.told.slice(before)).toEqual(netChanges);
  });

  it("the next list is silent, and the next change is told", async () => {
    const it = await restored();
    await relist(it, bumped, undone);
    await reach(it, bumped);
    const before = it.runner.deliveries.length;
    await relist(it, bumped + 10, undone);
    it.subscription.change(change("Modified", "a", bumped + 11));
    await quiet(it.runner);
    expect(it.runner.told.slice(before)).toEqual([`Modified a@${bumped + 11}`]);
  });

  it("an object whose changed fields are as they were told is silent", async () => {
    const it = await DispatchFixture.open({
      manifest: manifest({}, [trigger({ changedFields: [["spec", "v"]] })]),
    });
    const spec = { v: 1 };
    await it.list(9, [change("Added", "a", 5, { spec })], "initial");
    it.subscription.change(change("Modified", "a", 12, { spec }));
    await reach(it, 20);
    await relist(it, bumped, [change("Added", "a", 5, { spec })]);
    expect(it.runner.told).toEqual(["Added a@5"]);
  });
});

it("an object that comes back when nothing is on record of its deletion has another id than it had", async () => {
  const it = await DispatchFixture.open();
  await it.list(9, [change("Added", "a", 5), change("Added", "b", 6)], "initial");
  it.subscription.change(change("Deleted", "a", 12));
  await reach(it, 20);
  await reach(it, 21);
  await relist(it, bumped, [change("Added", "a", 5), change("Added", "b", 6)]);
  const [first] = it.runner.deliveries.filter(({ object }) => object.name === "a");
  const last = it.runner.deliveries.at(-1);
  expect(it.runner.told).toEqual(["Added a@5", "Added b@6", "Deleted a@12", "Added a@5"]);
  expect(last?.id).not.toBe(first?.id);
});

it("a list that lags tells nothing, and leaves what is known as it is", async () => {
  const it = await knowing();
  await relist(it, 11, [change("Added", "a", 5)]);
  expect(it.runner.told).toEqual(["Added a@5", "Modified a@12"]);
  it.runner.answer = () => done;
  it.subscription.change(change("Deleted", "a", 22));
  await quiet(it.runner);
  expect(it.runner.told.at(-1)).toBe("Deleted a@22");
});
