import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { change, DispatchFixture, done, manifest, quiet, trigger } from "../fixture.ts";
import { open, owned, pods, reconciler, runs, withPods } from "../reconcile/fixture.ts";

const inAll = manifest({}, [trigger(), pods(undefined)]);
/** More events than a function keeps in memory. */
const many = 1_100;

describe("an edit from mode All to Reconcile", () => {
  it("has no key run as if its object were gone while the object's own event waits on disk", async () => {
    const first = await withPods(await DispatchFixture.open({ manifest: inAll }));
    first.runner.answer = () => undefined;
    // The child's watch is ahead of the owner's.
    first.pods.change(owned("Added", "web", 5_001, "shop"));
    for (let at = 1; at <= many; at++) first.subscription.change(change("Added", `other-${at}`, 1 + at));
    first.subscription.change(change("Added", "shop", 5_000));
    await first.clock.advance(100_000);
    first.runner.answer = () => done;
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: reconciler() }), false);
    for (const source of [second.subscription, second.pods]) source.bookmark(resourceVersion("6000"));
    await quiet(second.runner);
    await second.clock.advance(1_000);
    expect(runs(second).filter((run) => run.startsWith("shop@gone"))).toEqual([]);
  });
});

describe("an edit from mode Reconcile to All", () => {
  it("delivers a change at once of an object whose reconciler had asked for a run in a day", async () => {
    const first = await open();
    first.runner.answer = () => ({ ...done, requeueAfterMs: 86_400_000 });
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.answer = () => done;
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: inAll }), false);
    second.subscription.change(change("Modified", "shop", 12));
    await quiet(second.runner);
    await second.clock.advance(1_000);
    expect(second.runner.told.at(-1)).toBe("Modified shop@12");
  });

  it("tells an object that several waiting keys have been woken by once", async () => {
    const first = await open();
    first.dispatcher.hold("copy", "command");
    const web = owned("Added", "web", 12, "shop", "other");
    first.pods.change(web);
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const look = async () => ({ ...web.meta, body: web.body });
    const second = await withPods(await first.restart({ manifest: inAll, look }), false);
    await quiet(second.runner);
    await second.clock.advance(1_000);
    expect(second.runner.told).toEqual(["Added web@12"]);
  });

  it("tells the end of the object that the last run saw, however many have had its name since", async () => {
    const first = await open();
    first.subscription.change(change("Added", "shop", 11, { uid: "u1" }));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.dispatcher.hold("copy", "command");
    for (const [rv, uid] of [
      [12, "u2"],
      [14, "u3"],
    ] as const) {
      first.subscription.change(change("Deleted", "shop", rv, { uid: uid === "u2" ? "u1" : "u2" }));
      first.subscription.change(change("Added", "shop", rv + 1, { uid }));
      await quiet(first.runner);
      await first.clock.advance(1_000);
    }
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: inAll }), false);
    await quiet(second.runner);
    await second.clock.advance(1_000);
    expect(second.runner.deliveries.map(({ type, object }) => `${type} ${object.uid}`)).toEqual([
      "Deleted u1",
      "Added u3",
    ]);
  });

  it("tells the end of an object although the conditions refuse the next one of its name", async () => {
    const early = trigger({ matchConditions: [{ name: "early", expression: "object.spec.rv < 13" }] });
    const first = await open({ manifest: manifest({ mode: "Reconcile" }, [early, pods(undefined)]) });
    first.subscription.change(change("Added", "shop", 11, { uid: "u1" }));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.dispatcher.hold("copy", "command");
    first.subscription.change(change("Deleted", "shop", 12, { uid: "u1" }));
    first.subscription.change(change("Added", "shop", 13, { uid: "u2" }));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: manifest({}, [early, pods(undefined)]) }), false);
    await quiet(second.runner);
    await second.clock.advance(1_000);
    expect(second.runner.deliveries.map(({ type, object }) => `${type} ${object.uid}`)).toEqual(["Deleted u1"]);
  });
});
