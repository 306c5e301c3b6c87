import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/resource-version.ts";
import { change, done, failure, manifest, quiet, trigger } from "../fixture.ts";
import { open, owned, pods, reconciler, runs, withPods } from "./fixture.ts";

describe("a key", () => {
  const events = manifest({}, [trigger(), pods(undefined)]);

  it("that waits when its function takes events again comes as events of the objects that woke it, whole and flagged", async () => {
    const first = await open();
    first.runner.answer = () => failure();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    first.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(first.runner);
    await first.clock.advance(500);
    first.runner.deliveries.length = 0;
    first.runner.answer = () => done;
    // Of Pods only the metadata was kept, which says who owns them.
    const web = owned("Modified", "web", 12, "shop");
    const look = async () => ({ ...web.meta, body: web.body });
    const second = await withPods(await first.restart({ manifest: events, look }), false);
    await second.clock.advance(1_000);
    const told = second.runner.deliveries.map(({ id, redelivered, flags, body }) => {
      const { metadata, spec } = JSON.parse(body.toString());
      return [id, redelivered, flags.reason, metadata.name, spec.rv];
    });
    expect(told.toSorted()).toEqual([
      ["pods:uid-web/12/Added", true, "edited", "web", 12],
      ["settings:uid-shop/11/Added", true, "edited", "shop", 11],
    ]);
    expect([second.disk.spill.size, second.disk.journal.size]).toEqual([0, 0]);
  });

  it("that has not run is told without a flag, and one that its handler asked for at a time comes at that time", async () => {
    const first = await open();
    first.runner.answer = ({ object }) => (object.name === "late" ? { ...done, requeueAfterMs: 3_600_000 } : undefined);
    first.subscription.change(change("Added", "late", 11));
    await quiet(first.runner);
    first.dispatcher.hold("copy", "command");
    first.subscription.change(change("Added", "shop", 12));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.deliveries.length = 0;
    first.runner.answer = () => done;
    const second = await withPods(await first.restart({ manifest: events }), false);
    await second.clock.advance(1_000);
    expect(second.runner.told).toEqual(["Added shop@12"]);
    await second.clock.advance(3_600_000);
    expect(second.runner.told.slice(1)).toEqual(["Modified late@11 !"]);
  });

  it("whose object is gone comes as its deletion, with the object's own uid", async () => {
    const first = await open();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.answer = () => failure();
    first.subscription.change(change("Deleted", "shop", 12));
    await quiet(first.runner);
    first.subscription.bookmark(resourceVersion("20"));
    await first.clock.advance(100);
    first.runner.answer = () => done;
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: events }), false);
    await second.clock.advance(1_000);
    expect(second.runner.deliveries.map(({ type, object, redelivered }) => [type, object.uid, redelivered])).toEqual([
      ["Deleted", "uid-shop", true],
    ]);
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
