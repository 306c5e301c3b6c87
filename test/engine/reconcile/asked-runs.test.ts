import { describe, expect, it } from "vitest";
import { change, done, quiet } from "../fixture.ts";
import { open, owned, reconciler, runs, withPods } from "./fixture.ts";

describe("a key", () => {
  it("asks for a later time without failing, which a restart keeps, and a change comes before", async () => {
    const first = await open();
    first.runner.answer = () => ({ ...done, requeueAfterMs: 60_000 });
    for (const name of ["later", "sooner"]) first.subscription.change(change("Added", name, 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    expect(first.function.status()).toMatchObject({ queued: 0, requeued: 2, failures: 0 });
    first.runner.answer = () => done;
    const second = await first.restart({ manifest: reconciler() });
    second.subscription.change(change("Modified", "sooner", 12));
    await second.clock.advance(50_000);
    expect(second.runner.deliveries).toHaveLength(3);
    await second.clock.advance(10_000);
    expect(runs(second)).toEqual([
      "later@11 <- Added settings later",
      "sooner@11 <- Added settings sooner",
      "sooner@12 <- Modified settings sooner",
      "later@11 <- Requeue",
    ]);
  });

  it("runs at once, flagged by its cause, where a person has its object or one that counts for it told again", async () => {
    const first = await open();
    const child = owned("Added", "web", 12, "shop");
    const shop = change("Added", "shop", 11);
    first.subscription.change(shop);
    first.pods.change(child);
    await first.clock.advance(1_000);
    first.runner.deliveries.length = 0;
    expect(first.function.redeliver("pods", child)).toBe("queued");
    await first.clock.advance(1_000);
    expect(first.function.redeliver("settings", shop)).toBe("queued");
    await first.clock.advance(1_000);
    expect(runs(first)).toEqual(["shop@11 <- Replay", "shop@11 <- Replay"]);
    expect(first.function.redeliver("settings", change("Modified", "shop", 99))).toBe("news");
    // Once it is saved, a kill does not undo it.
    first.dispatcher.hold("copy", "command");
    first.function.redeliver("settings", shop);
    await first.function.saved();
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: reconciler() }), false);
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["shop@11 <- Replay"]);
    await second.clock.advance(1_000);
    expect(second.disk.spill.size).toBe(0);
  });

  it("runs once in each round of a resync, at a moment of its own that a restart does not change", async () => {
    const every = reconciler({ resyncMs: 3_600_000 });
    const first = await open({ manifest: every });
    const names = Array.from({ length: 40 }, (_, index) => `shop-${index}`);
    for (const [index, name] of names.entries()) first.subscription.change(change("Added", name, 11 + index));
    await quiet(first.runner);
    first.runner.deliveries.length = 0;
    await first.clock.advance(1_800_000);
    const half = first.runner.deliveries.length;
    expect(half).toBeGreaterThan(8);
    expect(half).toBeLessThan(32);
    const second = await first.restart({ manifest: every });
    await second.clock.advance(1_800_000 + 60_000);
    const told = second.runner.deliveries.map(({ object }) => object.name);
    expect(new Set(told).size).toBe(40);
    expect(told.length).toBeLessThan(45);
    expect(second.runner.deliveries.every(({ causes }) => causes?.every(({ type }) => type === "Resync"))).toBe(true);
  });

  it("is woken by a schedule of its function, as long as its object stands", async () => {
    const hourly = { name: "hourly", index: 2, times: { everyMs: 3_600_000 }, jitterMs: 0, missed: "Once" } as const;
    const fixture = await open({ manifest: { ...reconciler(), schedules: [hourly] } });
    for (const it of [change("Added", "a", 11), change("Added", "b", 12), change("Deleted", "b", 13)])
      fixture.subscription.change(it);
    await quiet(fixture.runner);
    fixture.runner.deliveries.length = 0;
    await fixture.clock.advance(3_600_000);
    expect(runs(fixture)).toEqual(["a@11 <- Scheduled hourly"]);
  });
});
