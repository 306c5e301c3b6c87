import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import type { SpilledEvent } from "../../runtime/journal/batch.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { copyJournal } from "../../runtime/migrate/copy.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, type DispatchOptions, done, manifest, quiet, trigger } from "./fixture.ts";

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const three = [change("Added", "a", 11), change("Added", "b", 12), change("Added", "c", 13)];

/** Simulates a power loss, after which another process continues from the content of the disk. */
async function powerLoss(it: DispatchFixture, options: DispatchOptions = {}): Promise<DispatchFixture> {
  it.disk.end = "power-loss";
  return it.restart(options);
}

/** A function that had listed before a power loss, and whose handlers now run until the test ends them. */
async function restored(options: DispatchOptions = {}): Promise<DispatchFixture> {
  const it = await powerLoss(await (await DispatchFixture.open()).listed(), options);
  it.runner.answer = () => undefined;
  return it;
}

/** Ends the process cleanly, which lets running attempts finish, and starts the next one. */
async function drained(it: DispatchFixture, options: DispatchOptions = {}): Promise<DispatchFixture> {
  const drain = it.drain();
  for (const end of it.runner.open.values()) end(done);
  await it.store.close(await drain);
  it.runner.answer = () => done;
  return it.restart(options);
}

describe("after a power loss", () => {
  const one = { manifest: manifest({ concurrency: 1 }) };

  it("flags what comes until something newer than the server had at the start, and no more", async () => {
    const it = await restored();
    it.subscription.serverIsAt(resourceVersion("12"));
    for (const each of three) it.subscription.change(each);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11 !", "Added b@12 !", "Added c@13"]);
  });

  it("a bookmark and a list of a server that lags behind that end no doubt", async () => {
    const it = await restored();
    it.subscription.serverIsAt(resourceVersion("12"));
    it.subscription.bookmark(resourceVersion("10"));
    it.subscription.change(change("Added", "a", 11));
    await it.list(11, [change("Added", "a", 11)]);
    it.subscription.change(change("Added", "b", 12));
    it.subscription.bookmark(resourceVersion("12"));
    it.subscription.change(change("Added", "c", 13));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11 !", "Added b@12 !", "Added c@13"]);
  });

  it("flags what a list tells once time went back, whose epoch another process may have begun, and nothing after it", async () => {
    const it = await restored();
    it.subscription.serverIsAt(resourceVersion("12"));
    it.subscription.bookmark(resourceVersion("12"));
    it.subscription.rewound();
    await it.list(9, [change("Added", "a", 8)], "rv-rewind");
    it.subscription.change(change("Added", "b", 10));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@8 !", "Added b@10"]);
  });

  it("what was received flagged and not handled is flagged after a drain, too", async () => {
    const it = await restored(one);
    it.subscription.serverIsAt(resourceVersion("12"));
    for (const each of three) it.subscription.change(each);
    await quiet(it.runner);
    const next = await drained(it, one);
    next.subscription.serverIsAt(resourceVersion("13"));
    for (const each of three) next.subscription.change(each);
    await quiet(next.runner);
    expect(next.runner.told.slice(0, 2)).toEqual(["Added a@11 !", "Added b@12 !"]);
    expect(next.runner.told).toHaveLength(3);
  });

  it("a drain that left nothing flagged behind is a clean end", async () => {
    const it = await restored(one);
    it.subscription.serverIsAt(resourceVersion("11"));
    for (const each of three) it.subscription.change(each);
    await quiet(it.runner);
    await it.runner.end("a");
    const next = await drained(it, one);
    next.subscription.change(change("Added", "c", 13));
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Added a@11 !", "Added b@12", "Added c@13"]);
  });

  it("a kill before all of it was told again leaves it flagged", async () => {
    const it = await restored(one);
    it.subscription.serverIsAt(resourceVersion("12"));
    for (const each of three.slice(0, 2)) it.subscription.change(each);
    await quiet(it.runner);
    const next = await it.restart(one);
    next.runner.answer = () => done;
    for (const each of three.slice(0, 2)) next.subscription.change(each);
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Added a@11 !", "Added a@11 #2 !", "Added b@12 !"]);
  });

  it("what waited on disk is flagged, and after a drain before its turn still is", async () => {
    const first = await (await DispatchFixture.open(one)).listed();
    const [view] = await first.store.views();
    const waiting = (sequence: number, name: string): SpilledEvent => {
      const { meta, body, type } = change("Added", name, 10 + sequence);
      const { resourceVersion } = meta;
      const id = `${meta.uid}/${resourceVersion}/${type}`;
      const of = { view: view?.id ?? 0, function: "copy", trigger: "settings", sequence, type, id, body };
      const rest = { flags: {}, deletedBy: resourceVersion, oldBody: undefined, receivedAt: 0, replayed: false };
      return { kind: "event", ...meta, ...of, ...rest, redelivered: false };
    };
    for (const event of [waiting(1, "a"), waiting(2, "b")]) first.disk.spill.set(`copy/${event.sequence}`, event);
    first.runner.answer = () => undefined;
    const second = await powerLoss(first, one);
    second.subscription.bookmark(resourceVersion("20"));
    await quiet(second.runner);
    const third = await drained(second, one);
    await quiet(third.runner);
    expect(third.runner.told).toEqual(["Added a@11 !", "Added b@12 !"]);
  });

  it("what waits while its function is paused is flagged, and what comes since is not, however often it is carried over", async () => {
    const paused = {
      ...one,
      opened: async ({ dispatcher }: Pick<DispatchFixture, "dispatcher">) => dispatcher.hold("copy", "command"),
    };
    const first = await (await DispatchFixture.open(paused)).listed();
    first.subscription.change(change("Added", "a", 11));
    await first.clock.advance(70_000);
    let it = await powerLoss(first, paused);
    it.subscription.serverIsAt(resourceVersion("13"));
    it.subscription.change(change("Added", "b", 13));
    it.subscription.change(change("Added", "c", 14));
    for (const version of [20, 30, 40]) {
      const clean = await it.drain();
      expect(clean).toBe(true);
      await it.store.close(clean);
      const from = new MemoryStore(it.disk);
      const disk = new MemoryDisk();
      await copyJournal(from, new MemoryStore(disk));
      disk.end = from.previousEnd;
      it = await it.restart({ ...paused, disk });
      it.subscription.serverIsAt(resourceVersion(String(version + 5)));
      if (version === 20) it.subscription.change(change("Added", "c", 14));
      it.subscription.change(change("Added", `n${version}`, version));
      await it.clock.advance(70_000);
    }
    it.dispatcher.release("copy", "command");
    await quiet(it.runner);
    expect(it.runner.told).toEqual([
      "Added a@11 !",
      "Added b@13 !",
      "Added c@14",
      "Added n20@20",
      "Added n30@30",
      "Added n40@40",
    ]);
  });

  it("is told again as it was on record, which may be older than what handlers saw, also from disk", async () => {
    const looks = { manifest: manifest({ concurrency: 1 }, [trigger({ changedFields: [["spec", "v"]] })]) };
    const at = (rv: number, v: number) => change("Modified", "b", rv, { spec: { v } });
    const first = await (await DispatchFixture.open(looks)).listed();
    first.subscription.change(change("Added", "b", 11, { spec: { v: 1 } }));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    // The power loss removed the record of what the handler then received, which is 2.
    const second = await powerLoss(first, looks);
    second.runner.answer = () => undefined;
    second.subscription.serverIsAt(resourceVersion("20"));
    second.subscription.change(change("Added", "a", 12));
    second.subscription.change(at(13, 1));
    await second.clock.advance(70_000);
    expect([...second.disk.spill.values()].map(({ name }) => name)).toContain("b");
    second.runner.answer = () => done;
    const third = await second.restart(looks);
    await quiet(third.runner);
    expect(third.runner.told.at(-1)).toBe("Modified b@13 !");
  });

  it("the farewell to a namespace that was left is flagged, and after a drain before its turn still is", async () => {
    const first = await DispatchFixture.open();
    const left = ["b", "c"].map((name) => change("Added", name, 6, { namespace: "team-b" }));
    await first.list(9, [change("Added", "a", 5), ...left]);
    await first.clock.advance(1_000);
    first.runner.deliveries.length = 0;
    first.runner.answer = () => undefined;
    const names = { type: "names", names: ["team-a"] } as const;
    const narrow = { manifest: manifest({ concurrency: 1 }, [trigger({ namespaces: names })]), namespace: "team-a" };
    const second = await powerLoss(first, narrow);
    await second.list(20, [change("Added", "a", 7)]);
    second.subscription.serverIsAt(resourceVersion("20"));
    second.subscription.change(change("Modified", "a", 21));
    const third = await drained(second, narrow);
    await quiet(third.runner);
    const farewells = third.runner.told.filter((each) => each.startsWith("Deleted"));
    expect(farewells).toEqual(["Deleted b@6 !", "Deleted c@6 !"]);
  });

  it("a function that is removed in doubt comes back in doubt, over ends in good order", async () => {
    const it = await restored();
    await it.dispatcher.remove("copy", { retire: true });
    await it.store.close(await it.drain());
    const between = await Dispatcher.open({
      store: new MemoryStore(it.disk),
      runner: it.runner,
      clock: it.clock,
      random: () => 0,
      observer: {},
      log: silent,
    });
    expect(await between.drain(1_000)).toBe(false);
    const next = await it.restart();
    next.runner.answer = () => done;
    next.subscription.serverIsAt(resourceVersion("11"));
    for (const each of three) next.subscription.change(each);
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Added a@11 !", "Added b@12", "Added c@13"]);
  });

  it("a function that is removed once nothing of it is in doubt keeps no end from being clean", async () => {
    const it = await restored();
    it.subscription.serverIsAt(resourceVersion("10"));
    it.subscription.bookmark(resourceVersion("10"));
    await it.dispatcher.remove("copy", { retire: true });
    expect(await it.drain()).toBe(true);
  });

  it("what has come to wait since is not flagged for it, also where its function is loaded again", async () => {
    const it = await restored();
    it.subscription.serverIsAt(resourceVersion("10"));
    it.subscription.bookmark(resourceVersion("10"));
    it.dispatcher.hold("copy", "command");
    it.subscription.change(change("Added", "a", 11));
    await it.clock.advance(70_000);
    await it.dispatcher.remove("copy", { retire: false });
    const again = await it.dispatcher.function(manifest(), { usesOldObject: false });
    const subscription = again.subscription("settings", { selection: "all", namespace: "" });
    subscription.serverIsAt(resourceVersion("11"));
    it.dispatcher.release("copy", "command");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11"]);
  });

  it("a change back to what is on record is told, since what came in between may be what is not", async () => {
    const options = { manifest: manifest({}, [trigger({ changedFields: [["spec"]] })]) };
    const first = await (await DispatchFixture.open(options)).listed();
    first.subscription.change(change("Added", "a", 11, { spec: "old" }));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const it = await powerLoss(first, options);
    it.subscription.serverIsAt(resourceVersion("13"));
    it.subscription.change(change("Modified", "a", 13, { spec: "old" }));
    it.subscription.change(change("Modified", "a", 14, { spec: "old" }));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Modified a@13 !"]);
  });

  it("the farewell to a namespace is flagged also where it is left later, and of what came since it is not", async () => {
    const chosen = { type: "labels", labelSelector: "team" } as const;
    const options = { manifest: manifest({}, [trigger({ namespaces: chosen })]), namespace: "team-a" };
    const first = await DispatchFixture.open(options);
    first.function.retain("settings", ["team-a"]);
    await first.list(9, [change("Added", "a", 5)]);
    await first.clock.advance(1_000);
    const second = await powerLoss(first, options);
    second.function.retain("settings", ["team-a"]);
    second.subscription.serverIsAt(resourceVersion("10"));
    second.subscription.bookmark(resourceVersion("10"));
    second.subscription.change(change("Added", "b", 11));
    await quiet(second.runner);
    second.function.retain("settings", []);
    await quiet(second.runner);
    expect(second.runner.told.slice(1).toSorted()).toEqual(["Added b@11", "Deleted a@5 !", "Deleted b@11"]);
  });

  it("an end before the namespaces of a trigger are known is no clean one", async () => {
    const labels = { type: "labels", labelSelector: "team" } as const;
    const both = { manifest: manifest({}, [trigger(), trigger({ name: "chosen", namespaces: labels })]) };
    const first = await (await DispatchFixture.open(both)).listed();
    first.function.retain("chosen", []);
    const second = await powerLoss(first, both);
    const caughtUp = ({ subscription }: DispatchFixture) => {
      subscription.serverIsAt(resourceVersion("20"));
      subscription.bookmark(resourceVersion("20"));
    };
    caughtUp(second);
    expect(await second.drain()).toBe(false);
    const third = await powerLoss(second, both);
    third.function.retain("chosen", []);
    caughtUp(third);
    expect(await third.drain()).toBe(true);
  });
});
