import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../runtime/engine/delivery/delivery.ts";
import type { DeliverySettings } from "../../../runtime/manifest/function.ts";
import { change, done, failure, quiet } from "../fixture.ts";
import { open, reconciler, runs, withPods } from "./fixture.ts";

/** A key whose only run failed, and whose dead letter was replayed. */
async function givenUpAndReplayed(retry: DeliverySettings["retry"]) {
  const fixture = await open({ manifest: reconciler({ retry }) });
  fixture.runner.answer = () => failure();
  fixture.subscription.change(change("Added", "shop", 11));
  await fixture.clock.advance(1_000);
  fixture.runner.answer = () => done;
  const [letter] = await fixture.store.deadLetters();
  const whole = await fixture.store.deadLetter(letter?.letter ?? "");
  if (whole) await fixture.dispatcher.replay(whole);
  await fixture.clock.advance(1_000);
  return fixture;
}

describe("a key", () => {
  it("that fails is tried again with backoff, and given up until its next change", async () => {
    const fixture = await open();
    fixture.runner.answer = () => failure();
    fixture.subscription.change(change("Added", "shop", 11));
    await fixture.clock.advance(999);
    expect(fixture.runner.deliveries).toHaveLength(1);
    await fixture.clock.advance(10_000);
    const first = "shop@11 <- Added settings shop";
    expect(runs(fixture)).toEqual([first, `${first} #2 !`, `${first} #3 !`]);
    expect([...fixture.disk.letters.values()].map(({ name, attempts }) => [name, attempts])).toEqual([["shop", 3]]);
    expect(fixture.disk.spill.size).toBe(0);
    fixture.runner.answer = () => done;
    fixture.subscription.change(change("Modified", "shop", 12));
    await quiet(fixture.runner);
    expect(runs(fixture).at(-1)).toBe("shop@12 <- Modified settings shop");
  });

  it("that waits for a retry runs at once for a newer change, as a first attempt", async () => {
    const fixture = await open({ manifest: reconciler({ onFailure: "Block" }) });
    fixture.runner.answer = ({ resourceVersion: at }) => (at === "11" ? failure() : done);
    fixture.subscription.change(change("Added", "shop", 11));
    await fixture.clock.advance(100_000);
    expect(fixture.function.status()).toMatchObject({ blockedLanes: 1 });
    fixture.subscription.change(change("Modified", "shop", 12));
    await quiet(fixture.runner);
    expect(runs(fixture).at(-1)).toBe("shop@12 <- Modified settings shop");
    expect(fixture.function.status()).toMatchObject({ blockedLanes: 0, queued: 0 });
  });

  const busy = { maxAttempts: 3, initialDelayMs: 1_000, maxDelayMs: 300_000, factor: 2 };
  const isOwnWrite = { "while it runs": true, "after its run": false };
  const endings: Record<string, Outcome> = {
    failed: failure(),
    permanent: { type: "permanent", durationMs: 1, error: { name: "Error", message: "no use", stack: "" } },
  };
  for (const [when, meanwhile] of Object.entries(isOwnWrite))
    for (const [ending, outcome] of Object.entries(endings)) {
      it(`rests ever longer where its runs end ${ending} and change its own object ${when}, to half a minute`, async () => {
        const fixture = await open({ manifest: reconciler({ retry: busy }) });
        const begunAt: number[] = [];
        let rv = 11;
        const write = () => fixture.subscription.change(change("Modified", "shop", ++rv));
        fixture.runner.answer = () => {
          begunAt.push(fixture.clock.monotonic());
          // Enough to recognise an endless loop.
          if (begunAt.length > 40) return done;
          if (meanwhile) write();
          return outcome;
        };
        fixture.subscription.change(change("Added", "shop", rv));
        for (let second = 0; second < 120; second++) {
          await quiet(fixture.runner);
          if (!meanwhile && begunAt.length < 40) write();
          await fixture.clock.advance(1_000);
        }
        const rests = begunAt.slice(1).map((at, index) => at - (begunAt[index] ?? 0));
        for (const [index, rest] of rests.entries())
          expect(rest).toBeGreaterThanOrEqual(Math.min(30_000, 1_000 * 2 ** index));
        // A fix of the object does not have to wait longer.
        expect(Math.max(...rests)).toBeLessThanOrEqual(31_000);
        expect(begunAt.length).toBeGreaterThan(6);
      });
    }

  it("runs at once where a person replays it, though it rests", async () => {
    const fixture = await givenUpAndReplayed({ ...busy, maxAttempts: 1, initialDelayMs: 20_000 });
    expect(runs(fixture).at(-1)).toBe("shop@11 <- Replay");
  });

  it("rests also where the process is killed amid it", async () => {
    const options = { manifest: reconciler({ retry: { ...busy, initialDelayMs: 20_000 } }) };
    const first = await open(options);
    first.runner.answer = () => {
      first.subscription.change(change("Modified", "shop", 12));
      return failure();
    };
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(1_000);
    const again = await withPods(await first.restart(options), false);
    again.runner.answer = () => done;
    await again.clock.advance(18_000);
    expect(again.runner.deliveries).toHaveLength(1);
    await again.clock.advance(6_000);
    expect(again.runner.deliveries).toHaveLength(2);
  });

  it("that was given up runs again when its dead letter is replayed", async () => {
    const fixture = await givenUpAndReplayed({ maxAttempts: 1, initialDelayMs: 1, maxDelayMs: 1, factor: 1 });
    expect(runs(fixture).at(-1)).toBe("shop@11 <- Replay");
    expect([fixture.disk.spill.size, fixture.disk.letters.size]).toEqual([0, 0]);
  });
});
