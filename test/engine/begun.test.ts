import { describe, expect, it } from "vitest";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import {
  change,
  DispatchFixture,
  type DispatchOptions,
  done,
  failure,
  inAnHour,
  manifest,
  quiet,
  trigger,
} from "./fixture.ts";

/** A store without room for events, so that checkpoints wait while an earlier event runs. */
class CrampedStore extends MemoryStore {
  constructor(disk: MemoryDisk) {
    super(disk, { spillLimit: 0, holdsQueues: false });
  }
}

const single = manifest({ concurrency: 1 });
const cramped = (disk: MemoryDisk): DispatchOptions => ({ disk, store: new CrampedStore(disk), manifest: single });

/** A process was killed during the Added of `a` from a list at 20, and its checkpoint is from before that list. */
async function killedAfterList(uid: string): Promise<{ it: DispatchFixture; disk: MemoryDisk }> {
  const disk = new MemoryDisk();
  const first = await (await DispatchFixture.open(cramped(disk))).listed();
  first.runner.answer = () => undefined;
  await first.list(20, [change("Added", "a", 15, { uid })]);
  await quiet(first.runner);
  const it = await first.restart(cramped(disk));
  it.runner.answer = () => done;
  expect([it.runner.told, it.subscription.resumeFrom]).toEqual([["Added a@15"], "1"]);
  return { it, disk };
}

/** Reloads the function in the same process. */
async function again({ dispatcher }: DispatchFixture) {
  await dispatcher.remove("copy", { retire: false });
  const loaded = await dispatcher.function(manifest(), { usesOldObject: false });
  return loaded.subscription("settings", { selection: "all", namespace: "" });
}

describe("what had begun when a process ended", () => {
  it("is known of each object, also where the records of two were one and another was interrupted", async () => {
    const options = { manifest: manifest(inAnHour) };
    const first = await (await DispatchFixture.open(options)).listed();
    const [a, b] = [change("Added", "a", 11), change("Added", "b", 12)];
    first.runner.answer = ({ object }) => (object.name === "a" ? undefined : failure());
    for (const each of [a, b]) first.subscription.change(each);
    await quiet(first.runner);
    await first.runner.end("a", { type: "interrupted" });
    await first.clock.advance(10_000);
    await first.runner.end("a", failure());
    await first.dispatcher.remove("copy", { retire: false });
    first.runner.answer = () => done;
    const again = await first.dispatcher.function(options.manifest, { usesOldObject: false });
    const subscription = again.subscription("settings", { selection: "all", namespace: "" });
    subscription.change(a);
    await quiet(first.runner);
    await first.clock.advance(1_000);
    expect(first.disk.begun.size).toBe(1);
    const next = await first.restart();
    for (const each of [a, b]) next.subscription.change(each);
    await quiet(next.runner);
    expect(next.runner.told.slice(2)).toEqual(["Added a@11 !", "Added a@11 #2 !", "Added b@12 #2 !"]);
    await next.clock.advance(1_000);
    expect(next.disk.begun.size).toBe(0);
  });

  it("leaves the journal at a reload once the position is past it and a newer event of the object waits", async () => {
    const options = { manifest: manifest(inAnHour) };
    const first = await (await DispatchFixture.open(options)).listed();
    first.subscription.change(change("Added", "a", 11));
    await first.clock.advance(1_000);
    first.runner.answer = () => undefined;
    first.subscription.change(change("Modified", "a", 12));
    await quiet(first.runner);
    const second = await first.restart({
      ...options,
      opened: async ({ dispatcher }) => dispatcher.hold("copy", "command"),
    });
    await second.list(20, [change("Modified", "a", 15)]);
    await second.clock.advance(120_000);
    expect([second.disk.begun.size, second.disk.spill.size]).toEqual([1, 1]);
    await again(second);
    await second.clock.advance(1_000);
    expect(second.disk.begun.size).toBe(0);
  });

  it("is on record for those that wait, and not for all that began with them", async () => {
    const options = { manifest: manifest({ concurrency: 64, ...inAnHour }) };
    const first = await (await DispatchFixture.open(options)).listed();
    const isBad = (name: string) => Number(name.slice(1)) % 64 === 0;
    first.runner.answer = ({ object }) => (isBad(object.name) ? failure() : done);
    for (let at = 0; at < 6_400; at++) {
      first.subscription.change(change("Added", `n${at}`, 11 + at));
      if (at % 64 === 63) await quiet(first.runner);
    }
    await first.clock.advance(1_000);
    const records = [...first.disk.begun.values()].flatMap(({ started }) => started);
    expect(records.filter(({ key }) => isBad(key.slice("team-a/".length)))).toHaveLength(100);
    expect(records.length).toBeLessThan(800);
    const second = await first.restart(options);
    second.runner.answer = () => done;
    for (let at = 0; at < 6_400; at++) second.subscription.change(change("Added", `n${at}`, 11 + at));
    await second.clock.advance(1_000);
    const waited = Array.from({ length: 100 }, (_, index) => `Added n${index * 64}@${11 + index * 64} #2 !`);
    expect(second.runner.told.slice(6_400)).toEqual(waited);
  });

  it("is known of a function that was removed meanwhile, also of an object that had left before and came back", async () => {
    const byLabel = {
      manifest: manifest(inAnHour, [trigger({ namespaces: { type: "labels", labelSelector: "team" } })]),
    };
    const it = await DispatchFixture.open({ ...byLabel, namespace: "team-a" });
    it.function.retain("settings", ["team-a"]);
    await it.list(9, [change("Added", "a", 5)], "initial");
    await quiet(it.runner);
    it.runner.answer = () => failure();
    it.function.retain("settings", []);
    await quiet(it.runner);
    const back = it.function.subscription("settings", { selection: "all", namespace: "team-a" });
    it.function.retain("settings", ["team-a"]);
    const list = back.list("initial", undefined);
    list.item(change("Added", "a", 5));
    list.end(change("Added", "a", 20).meta.resourceVersion);
    await it.clock.advance(1_000);
    it.runner.answer = ({ type }) => (type === "Deleted" ? done : failure());
    // It is not known yet which namespaces it reads.
    const second = await it.restart({ ...byLabel, namespace: "elsewhere" });
    await second.clock.advance(1_000);
    await second.dispatcher.remove("copy", { retire: true });
    const next = await second.restart({ ...byLabel, namespace: "team-a" });
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Added a@5", "Deleted a@5", "Deleted a@5 #2 !", "Added a@5", "Added a@5 #2 !"]);
  });

  it("is not taken for done because the object before it, under the same name, is gone", async () => {
    const { it, disk } = await killedAfterList("second");
    it.subscription.change(change("Added", "a", 5, { uid: "first" }));
    await quiet(it.runner);
    it.runner.answer = () => undefined;
    await it.list(30, [change("Added", "a", 25, { uid: "second" })]);
    it.dispatcher.hold("copy", "forbidden");
    await it.runner.end("a");
    await it.clock.advance(1_000);
    const next = await it.restart(cramped(disk));
    next.runner.answer = () => done;
    await next.list(40, [change("Added", "a", 25, { uid: "second" })]);
    await quiet(next.runner);
    expect(next.runner.told.slice(1)).toEqual(["Added a@5 !", "Deleted a@5", "Added a@25 !"]);
  });

  it("is no reason to tell that an object came which came in an older state meanwhile", async () => {
    const { it } = await killedAfterList("first");
    it.subscription.change(change("Added", "a", 5, { uid: "first" }));
    await quiet(it.runner);
    await it.list(30, [change("Added", "a", 25, { uid: "first" })]);
    await quiet(it.runner);
    expect(it.runner.told.slice(1)).toEqual(["Added a@5 !", "Modified a@25"]);
  });

  it.each(["restart", "reload"] as const)(
    "is known to be done though its record stands for another's sake, after a %s and two objects of its name that went",
    async (how) => {
      const first = await (await DispatchFixture.open()).listed();
      first.runner.answer = ({ object }) => (object.name === "b" ? failure("no", 3_600_000) : done);
      // One commit with one row of the journal.
      for (const each of [change("Added", "a", 11, { uid: "first" }), change("Added", "b", 12)])
        first.subscription.change(each);
      await quiet(first.runner);
      for (const [rv, uid] of [
        [13, "first"],
        [15, "second"],
      ] as const) {
        if (uid === "second") first.subscription.change(change("Added", "a", 14, { uid }));
        first.subscription.change(change("Deleted", "a", rv, { uid }));
        await quiet(first.runner);
        await first.clock.advance(1_000);
      }
      const told = ["Added a@11", "Added b@12", "Deleted a@13", "Added a@14", "Deleted a@15"];
      expect(first.runner.told).toEqual(told);
      const subscription = how === "restart" ? (await first.restart()).subscription : await again(first);
      const list = subscription.list("relist", undefined);
      list.item(change("Added", "b", 12));
      list.end(change("Added", "b", 20).meta.resourceVersion);
      await quiet(first.runner);
      expect(first.runner.told.filter((each) => each.includes(" a@"))).toEqual(
        told.filter((each) => each.includes(" a@")),
      );
    },
  );
});
