import { describe, expect, it } from "vitest";
import { change, done, failure, manifest, quiet, trigger } from "../fixture.ts";
import { open, pods, reconciler, runs } from "./fixture.ts";

describe("a key", () => {
  it("that waits when its function takes events again comes as one event", async () => {
    const first = await open();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    const events = manifest({}, [trigger(), pods(undefined)]);
    first.runner.answer = () => done;
    const second = await first.restart({ manifest: events });
    await second.clock.advance(1_000);
    expect(second.runner.told.at(-1)).toContain("Modified shop");
    expect(second.disk.spill.size).toBe(0);
  });

  it("stands for the events that wait when its function begins to reconcile", async () => {
    const events = manifest({ onFailure: "Block" }, [trigger(), pods(undefined)]);
    const first = await open({ manifest: events });
    first.runner.answer = () => failure();
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(100_000);
    expect(first.disk.spill.size).toBe(1);
    first.runner.answer = () => done;
    const second = await first.restart({ manifest: reconciler() });
    await second.clock.advance(1_000);
    expect(runs(second).at(-1)).toBe("shop@11 <- Added settings shop");
    expect(second.disk.spill.size).toBe(0);
  });
});
