import { describe, expect, it } from "vitest";
import type { WatchfireError } from "../../runtime/base/errors.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Batch } from "../../runtime/journal/batch.ts";
import { DeadLetters } from "../../runtime/journal/dead-letters.ts";
import type { Trigger } from "../../runtime/manifest/function.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, type DispatchOptions, done, failure, manifest, quiet, trigger } from "./fixture.ts";

const oneAttempt = manifest({ retry: { ...manifest().delivery.retry, maxAttempts: 1 } });

/** A fixture with one dead letter, of `a`. */
async function withLetter(options: DispatchOptions = {}): Promise<{ it: DispatchFixture; letters: DeadLetters }> {
  const it = await (await DispatchFixture.open({ manifest: oneAttempt, ...options })).listed();
  it.runner.answer = () => failure();
  it.subscription.change(change("Added", "a", 11));
  await quiet(it.runner);
  await it.clock.advance(1_000);
  it.runner.answer = () => done;
  return { it, letters: new DeadLetters(it.store, it.dispatcher) };
}

describe("a dead letter", () => {
  it("is told of once it is on disk: its object, its id, and the commands that show and replay it", async () => {
    let written = Promise.withResolvers<void>();
    written.resolve();
    class SlowStore extends MemoryStore {
      override async commit(batch: Batch): Promise<readonly string[]> {
        await written.promise;
        return super.commit(batch);
      }
    }
    const it = await (await DispatchFixture.open({ manifest: oneAttempt, store: new SlowStore() })).listed();
    it.runner.answer = () => {
      written = Promise.withResolvers();
      return failure();
    };
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect(it.warnings).toEqual([]);
    written.resolve();
    await quiet(it.runner);
    const [letter] = await it.store.deadLetters();
    expect(it.warnings).toEqual([
      {
        msg: "event given up",
        function: "copy",
        trigger: "settings",
        object: "v1/ConfigMap team-a/a",
        attempt: 1,
        letter: letter?.letter,
        show: `watchfire dead-letters show ${letter?.letter}`,
        replay: `watchfire dead-letters replay ${letter?.letter}`,
      },
    ]);
  });

  it("of a trigger that is gone is not replayed but kept, and stalls nothing", async () => {
    const { it } = await withLetter();
    const other = trigger({ name: "other", labelSelector: "x=1" });
    await it.dispatcher.remove("copy", { retire: false });
    const loaded = await it.dispatcher.function(manifest({}, [other]), { usesOldObject: false });
    const subscription = loaded.subscription("other", { selection: "x=1", namespace: "" });
    const letters = new DeadLetters(it.store, it.dispatcher);
    await expect(letters.replay(["1"])).rejects.toMatchObject({ code: "WF_CHECKPOINT_LETTER_HOMELESS" });
    expect(await letters.list()).toHaveLength(1);
    subscription.list("initial", undefined).end(resourceVersion("20"));
    subscription.change(change("Added", "b", 21));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added b@21"]);
  });

  it("of a deletion that was found shows the last body at each attempt after its replay, and is kept with it", async () => {
    const twice = manifest({ retry: { ...manifest().delivery.retry, maxAttempts: 2 } });
    const it = await (await DispatchFixture.open({ manifest: twice })).listed();
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    it.runner.answer = () => failure();
    await it.list(20, []);
    await it.clock.advance(5_000);
    const letters = new DeadLetters(it.store, it.dispatcher);
    await letters.replay(["1"]);
    await it.clock.advance(5_000);
    const deletions = it.runner.deliveries.filter(({ type }) => type === "Deleted");
    expect(deletions.map(({ body }) => JSON.parse(body.toString()).spec)).toEqual(Array(4).fill({ rv: 11 }));
    const kept = await it.store.deadLetter("2");
    expect(JSON.parse(String(kept?.body)).spec).toEqual({ rv: 11 });
  });

  it("of a function that was removed is not replayed but kept, whether a runtime runs or not", async () => {
    const { it, letters } = await withLetter();
    await it.dispatcher.remove("copy", { retire: true });
    const refusal = { code: "WF_CHECKPOINT_LETTER_HOMELESS" };
    await expect(letters.replay(["1"])).rejects.toMatchObject(refusal);
    await expect(new DeadLetters(it.store).replay(["1"])).rejects.toMatchObject(refusal);
    expect(await letters.list()).toHaveLength(1);
    await letters.drop(["1"]);
    expect(await letters.list()).toHaveLength(0);
  });

  it("is kept if its trigger goes while letters before it are replayed", async () => {
    const { it, letters } = await withLetter();
    it.runner.answer = () => failure();
    for (const [index, name] of ["b", "c"].entries()) it.subscription.change(change("Added", name, 12 + index));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    it.runner.answer = () => done;
    const written = Promise.withResolvers<void>();
    const sync = it.store.sync.bind(it.store);
    let syncs = 0;
    it.store.sync = async () => {
      if (++syncs === 1) await written.promise;
      return sync();
    };
    const replayed = letters.replay(["1", "2", "3"]);
    await quiet(it.runner);
    await it.dispatcher.remove("copy", { retire: false });
    const other = trigger({ name: "other", labelSelector: "x=1" });
    const loaded = it.dispatcher.function(manifest({}, [other]), { usesOldObject: false });
    written.resolve();
    await expect(replayed).rejects.toMatchObject({ code: "WF_CHECKPOINT_LETTER_HOMELESS" });
    await loaded;
    expect((await letters.list()).map(({ letter }) => letter)).toEqual(["2", "3"]);
  });

  it.each([
    ["labels", { labelSelector: "x=1" }],
    ["conditions", { matchConditions: [{ name: "never", expression: "false" }] }],
  ])("is delivered when it is replayed, although the trigger's %s select its object no more", async (_, edit) => {
    const { it, letters } = await withLetter();
    await it.dispatcher.remove("copy", { retire: false });
    const loaded = await it.dispatcher.function(manifest({}, [trigger(edit)]), { usesOldObject: false });
    const selection = "labelSelector" in edit ? edit.labelSelector : "all";
    loaded.subscription("settings", { selection, namespace: "" }).list("initial", undefined).end(resourceVersion("20"));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    const before = it.runner.told.length;
    await letters.replay(["1"]);
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect(it.runner.told.slice(before)).toEqual(["Added a@11 !"]);
  });

  it("says of a replay whose event waits on disk, until its function is loaded", async () => {
    const { it, letters } = await withLetter();
    await it.dispatcher.remove("copy", { retire: false });
    const fault = { code: "WF_BUNDLE_SYNTAX", message: "WF_BUNDLE_SYNTAX: it does not build" } as const;
    const told = new DeadLetters(it.store, it.dispatcher, "", (name) => (name === "copy" ? fault : undefined));
    expect(await told.replay(["1"])).toEqual([{ function: "copy", events: 1, ...fault }]);
    await it.dispatcher.function(oneAttempt, { usesOldObject: false });
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
    await expect(letters.replay(["1"])).rejects.toMatchObject({ code: "WF_CHECKPOINT_NO_DEAD_LETTER" });
  });

  it("that is replayed is counted where its event waits, while its function is not loaded and after it is gone", async () => {
    const { it, letters } = await withLetter();
    const onRecord = () => {
      const { waiting, letterStock } = it.dispatcher.unloaded("copy") ?? {};
      return [waiting?.count, waiting?.ageSeconds, letterStock?.count];
    };
    expect(it.dispatcher.unloaded("copy")).toBeUndefined();
    await it.dispatcher.remove("copy", { retire: false });
    expect([onRecord(), it.store.suspended()]).toEqual([[0, 0, 1], new Map()]);
    await letters.replay(["1"]);
    expect(onRecord()).toEqual([1, expect.any(Number), 0]);
    await it.dispatcher.remove("copy", { retire: true });
    expect([onRecord(), it.store.suspended()]).toEqual([
      [1, expect.any(Number), 0],
      new Map([["copy", it.clock.now()]]),
    ]);
    await it.dispatcher.function(oneAttempt, { usesOldObject: false });
    expect([it.dispatcher.unloaded("copy"), it.store.suspended()]).toEqual([undefined, new Map()]);
  });

  it("is refused with what to do about it", async () => {
    const { it, letters } = await withLetter();
    const hint = async (of = letters) => {
      const refused: WatchfireError = await of.replay(["1"]).then(Promise.reject, (error) => error);
      expect(refused.code).toBe("WF_CHECKPOINT_LETTER_HOMELESS");
      return refused.hint;
    };
    const then = "replay the letter once the function is loaded, or drop it";
    const load = async (over: Partial<Trigger>) => {
      await it.dispatcher.remove("copy", { retire: false });
      await it.dispatcher.function(manifest({}, [trigger({ labelSelector: "x=1", ...over })]), {
        usesOldObject: false,
      });
    };
    await load({ name: "other" });
    expect(await hint()).toBe(`put trigger settings back, under this name and for ConfigMap, and ${then}`);
    await load({ kind: "Secret" });
    expect(await hint()).toBe(`put trigger settings back, under this name and for ConfigMap, and ${then}`);
    await it.dispatcher.remove("copy", { retire: true });
    expect(await hint()).toBe(`put function copy, which is gone, back with trigger settings, and ${then}`);
    const fault = { code: "WF_BUNDLE_SYNTAX", message: "WF_BUNDLE_SYNTAX: no\n  at line 3" } as const;
    const broken = new DeadLetters(it.store, it.dispatcher, "", () => fault);
    expect(await hint(broken)).toBe(`fix function copy, which is not loaded (WF_BUNDLE_SYNTAX: no), and ${then}`);
  });

  it("that is replayed twice at once runs once, and is counted once", async () => {
    const { it, letters } = await withLetter();
    const both = await Promise.allSettled([letters.replay(["1"]), letters.replay(["1"])]);
    await quiet(it.runner);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(it.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
    expect(it.function.status().deadLetters).toBe(0);
  });

  it("is dropped while the replay of another waits for a store that is full, and makes room for it", async () => {
    const { it, letters } = await withLetter();
    it.runner.answer = () => failure();
    it.subscription.change(change("Added", "b", 12));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    it.runner.answer = () => done;
    const room = Promise.withResolvers<void>();
    it.store.sync = () => room.promise;
    const drop = it.store.commit.bind(it.store);
    it.store.commit = async (batch) => {
      if (batch.droppedDeadLetters.includes("2")) room.resolve();
      return drop(batch);
    };
    const replayed = letters.replay(["1"]);
    const taken = expect(letters.drop(["1"])).rejects.toMatchObject({ code: "WF_CHECKPOINT_NO_DEAD_LETTER" });
    await letters.drop(["2"]);
    await Promise.all([replayed, taken]);
    expect([await letters.list(), it.function.status().deadLetters]).toEqual([[], 0]);
  });

  it.each([
    ["dropped", "copy"],
    ["dropped", "a function that is not loaded"],
    ["replayed", "a function that is not loaded"],
  ] as const)(
    "is not %s of %s before the store has it, which may take a batch and say that it failed",
    async (what, of) => {
      const { it, letters } = await withLetter();
      if (of !== "copy") await it.dispatcher.remove("copy", { retire: false });
      const commit = it.store.commit.bind(it.store);
      const batches = new Set<Batch>();
      let isAway = true;
      it.store.commit = (batch) => {
        batches.add(batch);
        return isAway ? Promise.reject(new Error("nats is away")) : commit(batch);
      };
      let done = false;
      const settled = (what === "dropped" ? letters.drop(["1"]) : letters.replay(["1"])).then(() => {
        done = true;
      });
      await it.clock.advance(10_000);
      // The same batch again: a store that has accepted it waits for the commit in progress.
      expect([done, batches.size, it.dispatcher.trouble?.message]).toEqual([
        false,
        1,
        expect.stringContaining("nats is away"),
      ]);
      isAway = false;
      await it.clock.advance(2_000);
      await settled;
      expect([await letters.list(), it.dispatcher.trouble]).toEqual([[], undefined]);
    },
  );

  it("is told, though its function is loaded while the store does not take its replay", async () => {
    const { it, letters } = await withLetter();
    await it.dispatcher.remove("copy", { retire: false });
    const commit = it.store.commit.bind(it.store);
    let isAway = true;
    it.store.commit = (batch) => (isAway && batch.spill.length > 0 ? Promise.reject(new Error("full")) : commit(batch));
    const replayed = letters.replay(["1"]);
    await it.clock.advance(3_000);
    const loaded = it.dispatcher.function(oneAttempt, { usesOldObject: false });
    await it.clock.advance(3_000);
    isAway = false;
    await it.clock.advance(2_000);
    await Promise.all([replayed, loaded]);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
  });

  it("is told, though its function reads what it has on disk as it is replayed", async () => {
    const { it, letters } = await withLetter();
    await it.dispatcher.remove("copy", { retire: false });
    const reads = Promise.withResolvers<void>();
    const headers = it.store.spillHeaders.bind(it.store);
    it.store.spillHeaders = async (name) => {
      const found = [...(await headers(name))];
      await reads.promise;
      return found;
    };
    const loaded = it.dispatcher.function(oneAttempt, { usesOldObject: false });
    await it.clock.advance(1_000);
    it.store.spillHeaders = headers;
    const replayed = letters.replay(["1"]);
    await it.clock.advance(1_000);
    reads.resolve();
    await Promise.all([replayed, loaded]);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
  });

  it("that is dropped while it is replayed is unknown by then, and is counted once", async () => {
    const { it, letters } = await withLetter();
    const both = await Promise.allSettled([letters.replay(["1"]), letters.drop(["1"])]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(it.function.status().deadLetters).toBe(0);
  });

  it("that is replayed in mode Latest takes no newer state's place, and no newer state takes its place", async () => {
    const latest = manifest({ ...oneAttempt.delivery, mode: "Latest" });
    const { it, letters } = await withLetter({ manifest: latest });
    it.runner.answer = () => undefined;
    it.subscription.change(change("Modified", "a", 15));
    await quiet(it.runner);
    await it.runner.end("a", failure());
    it.subscription.change(change("Modified", "a", 20));
    it.subscription.change(change("Modified", "a", 25));
    await quiet(it.runner);
    await letters.replay(["2"]);
    it.subscription.change(change("Modified", "a", 30));
    it.runner.answer = () => done;
    await it.runner.end("a");
    expect(it.runner.told).toEqual([
      "Added a@11",
      "Modified a@15",
      "Modified a@20",
      "Modified a@25",
      "Modified a@15 !",
      "Modified a@30",
    ]);
  });
});
