import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { change, DispatchFixture, done, manifest, quiet } from "../fixture.ts";

describe("a handler that is told each event", () => {
  it("gets one again at the time that it asks for, flagged, with no attempt counted, and its lane waits", async () => {
    const fixture = await (await DispatchFixture.open()).listed();
    fixture.runner.answer = ({ resourceVersion: at, redelivered }) =>
      at === "11" && !redelivered ? { ...done, requeueAfterMs: 60_000 } : done;
    for (const it of [change("Added", "a", 11), change("Modified", "a", 12), change("Added", "b", 13)])
      fixture.subscription.change(it);
    await fixture.clock.advance(59_000);
    expect(fixture.runner.told).toEqual(["Added a@11", "Added b@13"]);
    await fixture.clock.advance(1_000);
    expect(fixture.runner.told.slice(2)).toEqual(["Added a@11 !", "Modified a@12"]);
    expect(Object.fromEntries(fixture.outcomes)).toEqual({ ok: 3 });
  });

  it("gets it at that time where the process was killed meanwhile, and its position has gone on", async () => {
    const first = await (await DispatchFixture.open({ manifest: manifest({ mode: "Latest" }) })).listed();
    first.runner.answer = () => ({ ...done, requeueAfterMs: 60_000 });
    first.subscription.change(change("Added", "a", 11));
    first.subscription.bookmark(resourceVersion("20"));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await first.restart({ manifest: manifest({ mode: "Latest" }) });
    expect(second.subscription.resumeFrom).toBe("20");
    second.runner.answer = () => done;
    await second.clock.advance(58_000);
    expect(second.runner.told).toEqual(["Added a@11"]);
    await second.clock.advance(1_000);
    expect(second.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
    await second.clock.advance(1_000);
    expect(second.disk.spill.size).toBe(0);
  });

  it("gets it no later where wall time was set back while the process was down", async () => {
    const first = await (await DispatchFixture.open()).listed();
    first.runner.answer = () => ({ ...done, requeueAfterMs: 60_000 });
    first.subscription.change(change("Added", "a", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.clock.step(-3_600_000);
    const second = await first.restart();
    second.runner.answer = () => done;
    await second.clock.advance(60_000);
    expect(second.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
  });
});
