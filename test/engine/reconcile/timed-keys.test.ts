import { describe, expect, it } from "vitest";
import { change, manifest, quiet, trigger } from "../fixture.ts";
import { byOwner, open, owned, pods, runs, withPods } from "./fixture.ts";

const hour = 3_600_000;
const hourly = { name: "hourly", index: 2, times: { everyMs: hour }, jitterMs: 0, missed: "Once" } as const;

/** A reconciler that has a schedule and a resync, and whose objects must meet a condition. */
const conditional = (expression: string) => ({
  ...manifest({ mode: "Reconcile", resyncMs: hour }, [
    trigger({ matchConditions: [{ name: "on", expression }] }),
    byOwner,
  ]),
  schedules: [hourly],
});

const put = (type: "Added" | "Modified", name: string, rv: number, on: boolean) =>
  change(type, name, rv, { spec: { on } });

/** The keys that ran, and the causes, both sorted. */
const ran = ({ runner: { deliveries } }: Parameters<typeof runs>[0]) => ({
  keys: [...new Set(deliveries.map(({ object }) => object.name))].toSorted(),
  causes: [...new Set(deliveries.flatMap(({ causes = [] }) => causes.map(({ type }) => type)))].toSorted(),
});

describe("a schedule and a resync of a reconciler", () => {
  it("run for the objects whose present state meets the conditions, also after a restart", async () => {
    const options = { manifest: conditional("object.spec.on") };
    const first = await open(options);
    for (const each of [put("Added", "a", 11, true), put("Added", "b", 12, false), put("Added", "c", 13, true)])
      first.subscription.change(each);
    first.subscription.change(put("Modified", "c", 14, false));
    first.subscription.change(put("Modified", "b", 15, true));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.deliveries.length = 0;
    await first.clock.advance(1.5 * hour);
    expect(ran(first)).toEqual({ keys: ["a", "b"], causes: ["Resync", "Scheduled"] });
    const second = await withPods(await first.restart(options), false);
    second.runner.deliveries.length = 0;
    await second.clock.advance(1.5 * hour);
    expect(ran(second).keys).toEqual(["a", "b"]);
  });

  it("run for all objects if a condition compares with the previous object", async () => {
    const fixture = await open({ manifest: conditional("oldObject == null || object.spec != oldObject.spec") });
    fixture.subscription.change(put("Added", "a", 11, true));
    await quiet(fixture.runner);
    fixture.subscription.change(put("Modified", "a", 12, true));
    await quiet(fixture.runner);
    await fixture.clock.advance(1_000);
    fixture.runner.deliveries.length = 0;
    await fixture.clock.advance(1.5 * hour);
    expect(ran(fixture).keys).toEqual(["a"]);
  });

  it("run for an object that other conditions refused, until the present ones have judged it", async () => {
    const first = await open({ manifest: conditional("object.spec.on") });
    first.subscription.change(put("Added", "a", 11, false));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await withPods(await first.restart({ manifest: conditional("object.spec.on == true") }), false);
    second.runner.deliveries.length = 0;
    await second.clock.advance(1.5 * hour);
    expect(ran(second).keys).toEqual(["a"]);
    second.subscription.change(put("Modified", "a", 12, false));
    await quiet(second.runner);
    await second.clock.advance(1_000);
    second.runner.deliveries.length = 0;
    await second.clock.advance(1.5 * hour);
    expect(ran(second).keys).toEqual([]);
  });
});

describe("a trigger for all keys", () => {
  const ofAll = {
    ...manifest({ mode: "Reconcile" }, [
      trigger({ matchConditions: [{ name: "on", expression: "object.spec.on" }] }),
      pods({ type: "all" }),
    ]),
  };

  it("runs every object that meets the conditions at each change, and says which change it was", async () => {
    const fixture = await open({ manifest: ofAll });
    for (const each of [put("Added", "a", 11, true), put("Added", "b", 12, false), put("Added", "c", 13, true)])
      fixture.subscription.change(each);
    await quiet(fixture.runner);
    fixture.runner.deliveries.length = 0;
    for (const each of [change("Added", "pod", 21), change("Modified", "pod", 22), change("Deleted", "pod", 23)]) {
      fixture.pods.change(each);
      await quiet(fixture.runner);
      await fixture.clock.advance(1_000);
    }
    const why = ["Added", "Modified", "Deleted"].map((type) => `${type} pods pod`);
    expect(runs(fixture)).toEqual(why.flatMap((cause) => [`a@11 <- ${cause}`, `c@13 <- ${cause}`]));
  });

  it("runs the keys that an earlier rule named of the object as well", async () => {
    const first = await open({ manifest: { ...ofAll, triggers: [trigger(), byOwner] } });
    first.subscription.change(put("Added", "a", 11, true));
    first.pods.change(owned("Added", "pod", 21, "gone"));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await withPods(await first.restart({ manifest: ofAll }), false);
    second.runner.deliveries.length = 0;
    second.pods.change(owned("Modified", "pod", 22, "a"));
    await quiet(second.runner);
    await second.clock.advance(1_000);
    expect(runs(second).toSorted()).toEqual(["a@11 <- Modified pods pod", "gone@gone <- Modified pods pod"]);
  });
});
