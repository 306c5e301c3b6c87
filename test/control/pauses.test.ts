import { describe, expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { Pauses } from "../../runtime/control/pauses.ts";
import { change, DispatchFixture, done, manifest, quiet } from "../engine/fixture.ts";

const pausesOf = ({ store, dispatcher, clock }: DispatchFixture) => Pauses.open({ store, dispatcher, clock });

/** Starts another process on the same disk. Like a runtime, it reads the pauses before it loads the function. */
async function restarted(from: DispatchFixture): Promise<{ it: DispatchFixture; pauses: Pauses }> {
  let pauses: Pauses | undefined;
  const it = await from.restart({
    opened: async (parts) => {
      pauses = await Pauses.open(parts);
    },
  });
  if (!pauses) throw new Error("not opened");
  return { it, pauses };
}

describe("a function that is paused", () => {
  test("begins nothing, lets what runs end, and goes on in order with all that came, unflagged", async () => {
    const it = await (await DispatchFixture.open()).listed();
    const pauses = await pausesOf(it);
    it.runner.answer = () => undefined;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await pauses.pause("copy");
    it.subscription.change(change("Modified", "a", 12));
    it.subscription.change(change("Modified", "a", 13));
    await it.runner.end("a");
    await it.clock.advance(60_000);
    expect(it.runner.told).toEqual(["Added a@11"]);
    expect(it.function.status()).toMatchObject({ inFlight: 0, queued: 2 });
    it.runner.answer = () => done;
    await pauses.resume("copy");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Modified a@12", "Modified a@13"]);
  });

  test("stays paused after kills, spills its events to disk, and neither loses nor repeats one", async () => {
    const first = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
    await (await pausesOf(first)).pause("copy");
    const names = Array.from({ length: 2_500 }, (_, index) => `n${index}`);
    for (const [index, name] of names.entries()) first.subscription.change(change("Added", name, 11 + index));
    first.subscription.bookmark(resourceVersion("9000"));
    await first.clock.advance(120_000);
    // The low-water mark has passed all events, so an API server would no longer have their history.
    expect(first.subscription.lowWaterMark).toBe("9000");
    const { it: second, pauses } = await restarted(first);
    expect(pauses.of("copy")).toMatchObject({ by: "command" });
    await second.clock.advance(5_000);
    expect(second.runner.told).toEqual([]);
    await pauses.resume("copy");
    await quiet(second.runner);
    expect(second.runner.told).toEqual(names.map((name, index) => `Added ${name}@${11 + index}`));
    const third = await restarted(second);
    expect(third.pauses.of("copy")).toBeUndefined();
  });

  test("goes on once neither its manifest, nor a command, nor a missing right holds it", async () => {
    const it = await (await DispatchFixture.open()).listed();
    const pauses = await pausesOf(it);
    pauses.heed("copy", true);
    await pauses.pause("copy");
    it.dispatcher.hold("copy", "forbidden");
    it.subscription.change(change("Added", "a", 11));
    await expect(pauses.resume("copy")).rejects.toThrow("WF_RUNTIME_PAUSED_BY_MANIFEST");
    expect(pauses.of("copy")).toEqual({ by: "manifest" });
    pauses.heed("copy", false);
    await quiet(it.runner);
    expect([pauses.of("copy"), it.runner.told]).toEqual([undefined, []]);
    it.dispatcher.release("copy", "forbidden");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11"]);
  });

  test("goes on only once the FunctionSet of its set pauses it no more, and a command says who holds it", async () => {
    const it = await (await DispatchFixture.open()).listed();
    const pauses = await pausesOf(it);
    pauses.heedSet("copy", "shop");
    await pauses.pause("copy");
    it.subscription.change(change("Added", "a", 11));
    await expect(pauses.resume("copy")).rejects.toThrow(/WF_RUNTIME_PAUSED_BY_SET.*FunctionSet shop/);
    expect(pauses.of("copy")).toEqual({ by: "set", set: "shop" });
    await quiet(it.runner);
    expect(it.runner.told).toEqual([]);
    pauses.heedSet("copy", undefined);
    await quiet(it.runner);
    expect([pauses.of("copy"), it.runner.told]).toEqual([undefined, ["Added a@11"]]);
  });

  test("is not paused where that could not be put on record", async () => {
    const it = await (await DispatchFixture.open()).listed();
    const store = { paused: () => it.store.paused(), setPaused: async () => Promise.reject(new Error("disk full")) };
    const pauses = await Pauses.open({ ...it, store: { ...store, sync: () => it.store.sync() } });
    await expect(pauses.pause("copy")).rejects.toThrow("disk full");
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    expect([pauses.of("copy"), it.runner.told]).toEqual([undefined, ["Added a@11"]]);
  });

  test.each(["WF_CHECKPOINT_NATS_AWAY", "WF_CHECKPOINT_NATS_FULL", "WF_CHECKPOINT_NATS_JETSTREAM"] as const)(
    "is paused, and goes on, once NATS that took nothing has written what was said: %s",
    async (code) => {
      const it = await (await DispatchFixture.open()).listed();
      let isAway = true;
      const store = {
        paused: () => it.store.paused(),
        sync: () => it.store.sync(),
        setPaused: async (name: string, since: number | undefined) => {
          if (isAway) throw new WatchfireError(code, { what: "it takes nothing" });
          await it.store.setPaused(name, since);
        },
      };
      const pauses = await Pauses.open({ ...it, store });
      const said: string[] = [];
      const paused = pauses.pause("copy").then(() => said.push("paused"));
      it.subscription.change(change("Added", "a", 11));
      await it.clock.advance(60_000);
      expect([said, it.runner.told]).toEqual([[], []]);
      // Neither call waits until the other is on record.
      void pauses.pause("another").catch(() => undefined);
      expect([pauses.of("copy")?.by, pauses.of("another")?.by]).toEqual(["command", "command"]);
      isAway = false;
      await it.clock.advance(1_000);
      await paused;
      expect([pauses.of("copy")?.by, (await it.store.paused()).has("copy"), it.runner.told]).toEqual([
        "command",
        true,
        [],
      ]);
      await pauses.resume("another");
      isAway = true;
      const resumed = pauses.resume("copy");
      await it.clock.advance(60_000);
      expect([pauses.of("copy")?.by, it.runner.told]).toEqual(["command", []]);
      isAway = false;
      await it.clock.advance(1_000);
      await resumed;
      await quiet(it.runner);
      expect([pauses.of("copy"), await it.store.paused()]).toEqual([undefined, new Map()]);
      expect(it.runner.told).toEqual(["Added a@11"]);
    },
  );

  test("is waited for no longer once its runtime ends", async () => {
    const it = await (await DispatchFixture.open()).listed();
    const away = () => Promise.reject(new WatchfireError("WF_CHECKPOINT_NATS_AWAY", { what: "no answer" }));
    const store = { paused: () => it.store.paused(), setPaused: away, sync: () => it.store.sync() };
    const pauses = await Pauses.open({ ...it, store });
    const ended = expect(pauses.pause("copy")).rejects.toThrow("abort");
    await it.clock.advance(60_000);
    pauses.close();
    await ended;
  });

  test("is as it was, on record too, where the store keeps what it could not write yet", async () => {
    const it = await (await DispatchFixture.open()).listed();
    let isAway = true;
    const store = {
      paused: () => it.store.paused(),
      sync: () => it.store.sync(),
      setPaused: async (name: string, since: number | undefined) => {
        await it.store.setPaused(name, since);
        if (isAway) throw new Error("nats is away");
      },
    };
    const pauses = await Pauses.open({ ...it, store });
    await expect(pauses.pause("copy")).rejects.toThrow("nats is away");
    expect([pauses.of("copy"), await it.store.paused()]).toEqual([undefined, new Map()]);
    isAway = false;
    await pauses.pause("copy");
    const before = await it.store.paused();
    isAway = true;
    await expect(pauses.resume("copy")).rejects.toThrow("nats is away");
    expect([pauses.of("copy")?.by, await it.store.paused()]).toEqual(["command", before]);
  });
});
