import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import type { Look } from "../../../runtime/engine/delivery/delivery.ts";
import { settle } from "../../virtual-clock.ts";
import { change, DispatchFixture, done, failure, inAnHour, manifest, quiet, trigger } from "../fixture.ts";
import { byOwner, open, owned, pods, reconciler, runs, withPods } from "../reconcile/fixture.ts";

/** Only the metadata of ConfigMaps is kept, so an event made from a key must read the object. */
const asks = trigger({ lastBody: "Metadata" });
const inAll = manifest({}, [asks, pods(undefined)]);
const reconciling = manifest({ mode: "Reconcile" }, [asks, byOwner]);

const held = {
  opened: async ({ dispatcher }: Pick<DispatchFixture, "dispatcher">) => dispatcher.hold("copy", "command"),
};
const stands = (rv: number, name = "shop"): Look => {
  const { meta, body } = change("Modified", name, rv);
  return async () => ({ ...meta, body });
};
const away: Look = () => Promise.reject(new Error("away"));

const versionOf = (body: Buffer | undefined): string | undefined =>
  body && JSON.parse(body.toString()).metadata.resourceVersion;

/** A key that waits for its first run, woken by its object. */
async function waitingKey() {
  const first = await open({ manifest: reconciling, ...held });
  first.subscription.change(change("Added", "shop", 11));
  await first.clock.advance(1_000);
  return first;
}

async function next(fixture: DispatchFixture, options: Parameters<DispatchFixture["restart"]>[0], advanceMs = 2_000) {
  fixture.runner.deliveries.length = 0;
  const restarted = await withPods(await fixture.restart(options), false);
  await quiet(restarted.runner);
  await restarted.clock.advance(advanceMs);
  return restarted;
}

describe("a state that a handler was shown by an event of an earlier one", () => {
  it("is flagged when its own event comes, though a kill cut that attempt off and the object is gone by the next", async () => {
    const first = await waitingKey();
    first.runner.answer = () => undefined;
    const second = await next(first, { manifest: inAll, look: stands(15) });
    expect(second.runner.told).toEqual(["Added shop@11"]);
    second.runner.answer = () => done;
    const third = await next(second, { manifest: inAll, look: async () => undefined });
    for (const rv of [14, 15, 16]) third.subscription.change(change("Modified", "shop", rv));
    await quiet(third.runner);
    expect(third.runner.told).toEqual(["Modified shop@14 !", "Modified shop@15 !", "Modified shop@16"]);
    await third.clock.advance(1_000);
    expect(third.disk.begun.size).toBe(0);
  });

  it("is no more behind the old object of the next: an older one that is kept is not shown", async () => {
    const first = await waitingKey();
    const second = await next(first, { manifest: inAll, look: stands(15), usesOldObject: true });
    expect(second.runner.told).toEqual(["Added shop@11"]);
    for (const rv of [16, 17]) second.subscription.change(change("Modified", "shop", rv));
    await quiet(second.runner);
    const old = second.runner.deliveries.slice(1).map(({ oldBody, redelivered }) => [redelivered, versionOf(oldBody)]);
    expect(old).toEqual([
      [false, undefined],
      [false, "16"],
    ]);
  });

  it("is flagged when its own event waited on disk meanwhile and the position is past it", async () => {
    const first = await waitingKey();
    first.runner.answer = () => undefined;
    const second = await next(first, { manifest: inAll, look: stands(15) });
    for (const rv of [14, 15, 16]) second.subscription.change(change("Modified", "shop", rv));
    second.subscription.bookmark(resourceVersion("20"));
    await second.clock.advance(100_000);
    expect(second.disk.spill.size).toBe(4);
    second.dispatcher.hold("copy", "command");
    await second.runner.end("shop");
    await second.clock.advance(1_000);
    second.runner.answer = () => done;
    const third = await next(second, { manifest: inAll, look: stands(16) });
    expect(third.runner.told).toEqual(["Modified shop@14 !", "Modified shop@15 !", "Modified shop@16"]);
    expect(third.disk.begun.size).toBe(0);
  });

  it("is flagged after a kill that follows attempts at an earlier one, between which the function was loaded anew", async () => {
    const small = manifest(inAnHour, [trigger({ object: "Metadata" })]);
    const first = await DispatchFixture.open({ manifest: small, ...held });
    await first.listed();
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(120_000);
    first.runner.answer = () => failure();
    const second = await first.restart({ manifest: manifest(inAnHour, [trigger()]), look: stands(15) });
    await second.clock.advance(1_000);
    for (const _ of ["edited back", "edited again"]) {
      await second.dispatcher.remove("copy", { retire: false });
      await second.dispatcher.function(small, { usesOldObject: false });
      await settle();
      await second.clock.advance(1_000);
    }
    second.runner.answer = () => done;
    const third = await second.restart({ manifest: small });
    await quiet(third.runner);
    for (const rv of [14, 15, 16]) third.subscription.change(change("Modified", "shop", rv));
    await quiet(third.runner);
    const changes = third.runner.told.filter((line) => line.startsWith("Modified"));
    expect(changes).toEqual(["Modified shop@14 !", "Modified shop@15 !", "Modified shop@16"]);
    await third.clock.advance(1_000);
    expect(third.disk.begun.size).toBe(0);
  });

  it("is flagged where that event is the object's first, and its handler has asked for it to come again", async () => {
    const first = await DispatchFixture.open({ manifest: manifest({}, [trigger({ object: "Metadata" })]), ...held });
    await first.listed();
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(120_000);
    first.runner.answer = () => ({ ...done, requeueAfterMs: 10_000 });
    let look = stands(14);
    const second = await first.restart({ manifest: manifest({}, [trigger()]), look: (...of) => look(...of) });
    await quiet(second.runner);
    await second.clock.advance(1_000);
    second.runner.answer = () => done;
    look = async () => undefined;
    for (const rv of [14, 15]) second.subscription.change(change("Modified", "shop", rv));
    second.subscription.change(change("Deleted", "shop", 16));
    await second.clock.advance(20_000);
    expect(second.runner.told).toEqual(["Added shop@11", "Modified shop@14 !", "Modified shop@15", "Deleted shop@16"]);
    expect(second.disk.begun.size).toBe(0);
  });

  it("is flagged where the event of the earlier one comes behind it", async () => {
    const other = await DispatchFixture.open({ manifest: inAll, ...held });
    await other.listed();
    other.subscription.change(change("Modified", "shop", 14));
    await other.clock.advance(120_000);
    const [waiting] = [...other.disk.spill.values()];
    const first = await waitingKey();
    const [row] = [...first.disk.spill.values()];
    if (waiting?.kind !== "event" || !row) throw new Error("nothing is on disk");
    const sequence = row.sequence + 1;
    first.kill();
    const store = first.store;
    first.disk.spill.set([...first.disk.spill.keys()][0]?.replace(String(row.sequence), String(sequence)) ?? "", {
      ...waiting,
      sequence,
      type: "Modified",
    });
    expect([...(await store.spillHeaders("copy"))].length).toBe(2);
    const second = await next(first, { manifest: inAll, look: stands(14) });
    expect(second.runner.told).toEqual(["Modified shop@14", "Added shop@11 !"]);
  });
});

describe("a state that a run was cut off with", () => {
  /** A run has started with a newer state than the recorded one, and is interrupted. */
  async function cutOff(options: { readonly selection?: string } = {}) {
    const first = await open({ manifest: reconciler({}, byOwner) });
    first.runner.answer = () => done;
    const small = manifest({ mode: "Reconcile" }, [trigger({ object: "Metadata" }), byOwner]);
    const second = await next(first, { manifest: small });
    second.subscription.change(change("Added", "shop", 11));
    await second.clock.advance(1_000);
    second.runner.answer = () => undefined;
    const third = await next(second, { manifest: reconciler(), look: stands(15), ...options });
    if (options.selection) await third.list(12, [change("Added", "shop", 11)], "initial");
    third.pods.change(owned("Added", "web", 12, "shop"));
    await third.clock.advance(1_000);
    expect(runs(third)).toEqual(["shop@15 <- Added pods web"]);
    third.runner.answer = () => done;
    return third;
  }

  const events = manifest({}, [trigger(), pods(undefined)]);
  const ofShop = ({ runner }: DispatchFixture) => runner.told.filter((line) => line.includes("shop"));

  it("is flagged when its own event comes after one before it, in a later epoch of the trigger as well", async () => {
    for (const options of [{}, { selection: "other" }]) {
      const last = await next(await cutOff(options), { manifest: events, look: stands(15), ...options });
      for (const rv of [14, 15, 16]) {
        last.subscription.change(change("Modified", "shop", rv));
        await quiet(last.runner);
      }
      expect(ofShop(last)).toEqual(["Modified shop@14 !", "Modified shop@15 !", "Modified shop@16"]);
    }
  });

  it("is flagged where the next run showed one before it", async () => {
    const third = await cutOff();
    third.runner.answer = () => undefined;
    await third.runner.end("shop", { type: "interrupted" });
    third.runner.answer = () => done;
    third.subscription.change(change("Modified", "shop", 14));
    await third.clock.advance(10_000);
    expect(runs(third).slice(1)).toEqual(["shop@14 <- Added pods web, Modified settings shop !"]);
    const last = await next(third, { manifest: events, look: stands(16) });
    for (const rv of [15, 16]) last.subscription.change(change("Modified", "shop", rv));
    await quiet(last.runner);
    expect(ofShop(last)).toEqual(["Modified shop@15 !", "Modified shop@16"]);
  });

  it("is flagged where its key was given up, since the process ended in each run", async () => {
    let cut = await cutOff();
    for (let kills = 1; kills < 12 && cut.disk.letters.size === 0; kills++) {
      cut.runner.answer = () => undefined;
      cut = await next(cut, { manifest: reconciler(), look: stands(15) });
    }
    expect([...cut.disk.letters.values()].map(({ error }) => error.name)).toEqual(["CrashLoop"]);
    cut.runner.answer = () => done;
    const last = await next(cut, { manifest: events, look: stands(16) });
    for (const rv of [14, 15, 16]) last.subscription.change(change("Modified", "shop", rv));
    await quiet(last.runner);
    expect(ofShop(last)).toEqual(["Modified shop@14 !", "Modified shop@15 !", "Modified shop@16"]);
  });

  it("is flagged after an edit to Reconcile and back that had no run of it, in such an epoch as well", async () => {
    for (const options of [{}, { selection: "other" }]) {
      const fourth = await next(await cutOff(options), { manifest: events, look: away, ...held, ...options });
      const fifth = await next(fourth, { manifest: reconciler(), look: stands(15), ...held, ...options });
      fifth.subscription.change(change("Modified", "shop", 15));
      await fifth.clock.advance(1_000);
      const last = await next(fifth, { manifest: events, look: stands(15, "web"), ...options });
      expect(ofShop(last)).toEqual(["Modified shop@15 !"]);
    }
  });
});

describe("a state that a run ended well with, newer than the one on record", () => {
  const small = manifest({ mode: "Reconcile" }, [trigger({ object: "Metadata" }), byOwner]);
  const events = manifest({}, [trigger(), pods(undefined)]);

  it("is flagged when its own event comes in another mode", async () => {
    const first = await open({ manifest: small });
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(1_000);
    const second = await next(first, { manifest: reconciler(), look: stands(15) });
    second.pods.change(owned("Added", "web", 12, "shop"));
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["shop@15 <- Added pods web"]);
    const last = await next(second, { manifest: events, look: stands(16) });
    for (const rv of [14, 15, 16]) {
      last.subscription.change(change("Modified", "shop", rv));
      await quiet(last.runner);
    }
    const ofShop = last.runner.told.filter((line) => line.includes("shop"));
    expect(ofShop).toEqual(["Modified shop@14 !", "Modified shop@15 !", "Modified shop@16"]);
    await last.clock.advance(1_000);
    expect(last.disk.begun.size).toBe(0);
  });

  it("does not flag the run that was due when that one ended, in the next process", async () => {
    const first = await open({ manifest: small });
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(1_000);
    first.runner.answer = () => undefined;
    const second = await next(first, { manifest: reconciler(), look: stands(15) });
    for (const [index, pod] of ["web", "cron"].entries()) {
      second.pods.change(owned("Added", pod, 12 + index, "shop"));
      await second.clock.advance(1_000);
    }
    second.dispatcher.hold("copy", "command");
    await second.runner.end("shop");
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["shop@15 <- Added pods web"]);
    second.runner.answer = () => done;
    const third = await next(second, { manifest: reconciler(), look: stands(15) });
    expect(runs(third)).toEqual(["shop@15 <- Added pods cron"]);
    third.subscription.change(change("Modified", "shop", 15));
    await third.clock.advance(1_000);
    expect(third.disk.begun.size).toBe(0);
  });

  it("leaves no record once its own event has come", async () => {
    const first = await open({ manifest: small });
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(1_000);
    const second = await next(first, { manifest: reconciler(), look: stands(15) });
    for (const [index, pod] of ["web", "cron"].entries()) {
      second.pods.change(owned("Added", pod, 12 + index, "shop"));
      await second.clock.advance(1_000);
    }
    second.subscription.change(change("Modified", "shop", 15));
    await second.clock.advance(1_000);
    expect(runs(second).every((run) => run.startsWith("shop@15") && !run.endsWith("!"))).toBe(true);
    expect(second.disk.begun.size).toBe(0);
  });
});

describe("an event made of a key", () => {
  it("comes once of an object that its trigger let go and selected again", async () => {
    const first = await waitingKey();
    for (const rv of [12, 13]) first.subscription.change(change(rv === 12 ? "Deleted" : "Added", "shop", rv));
    await first.clock.advance(1_000);
    const second = await next(first, { manifest: inAll, look: stands(13) });
    expect(second.runner.told).toEqual(["Added shop@13"]);
  });
});

describe("an event made of a key, which waits while its function reconciles again", () => {
  it("is flagged where a run of the key was cut off meanwhile", async () => {
    const second = await next(await waitingKey(), { manifest: inAll, ...held });
    second.runner.answer = () => undefined;
    // Its body is not stored, and cannot be read.
    const third = await next(second, { manifest: reconciling, look: away });
    third.pods.change(owned("Added", "web", 12, "shop"));
    await third.clock.advance(10_000);
    const isSeen = runs(third).some((run) => run.startsWith("shop@11"));
    third.runner.answer = () => done;
    const last = await next(third, { manifest: inAll, look: stands(11) });
    expect(last.runner.told.filter((line) => line.includes("shop"))).toEqual([`Added shop@11${isSeen ? " !" : ""}`]);
  });

  it("wakes its key, which runs once that is done", async () => {
    const second = await next(await waitingKey(), { manifest: inAll, ...held });
    let look = away;
    const third = await next(second, { manifest: reconciling, look: (...of) => look(...of) });
    third.pods.change(owned("Added", "web", 12, "shop"));
    await third.clock.advance(10_000);
    look = stands(11);
    await third.clock.advance(10_000);
    expect(runs(third)).toEqual(["shop@11 <- Added pods web, Added settings shop"]);
    expect(third.disk.spill.size).toBe(0);
  });

  it("has its run flagged where an attempt at it was cut off", async () => {
    const first = await waitingKey();
    first.runner.answer = () => undefined;
    const second = await next(first, { manifest: inAll, look: stands(11) });
    expect(second.runner.told).toEqual(["Added shop@11"]);
    second.runner.answer = () => done;
    const third = await next(second, { manifest: reconciling, look: stands(11) });
    expect(runs(third)).toEqual(["shop@11 <- Added settings shop !"]);
  });
});
