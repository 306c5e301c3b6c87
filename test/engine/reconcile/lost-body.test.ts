import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { change, quiet } from "../fixture.ts";
import { byLabel, open, owned, reconciler, runs, withPods } from "./fixture.ts";

describe("a key", () => {
  it("whose body the store has lost is looked up, and runs once that is answered", async () => {
    const first = await open();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    for (const { known } of first.disk.views.values())
      for (const [key, object] of known) known.set(key, { ...object, body: undefined });
    let asked = 0;
    const look = async () => {
      if (asked++ === 0) throw new Error("the API server is away");
      const { meta, body } = change("Modified", "shop", 20);
      return { ...meta, body };
    };
    const second = await withPods(await first.restart({ manifest: reconciler(), look }), false);
    second.pods.change(owned("Added", "web", 12, "shop"));
    await second.clock.advance(2_000);
    expect(runs(second).at(-1)).toBe("shop@20 <- Added pods web");
    expect(asked).toBe(2);
  });

  it("is woken where an object comes from, and by its end, also where the store has lost the object's body", async () => {
    const options = { manifest: reconciler({}, byLabel) };
    const first = await open(options);
    for (const name of ["a", "b", "c"]) first.subscription.change(change("Added", name, 11));
    first.pods.change(change("Added", "moves", 12, { spec: { of: "a" } }));
    first.pods.change(change("Added", "ends", 13, { spec: { of: "b" } }));
    await first.clock.advance(1_000);
    for (const { trigger: of, known } of first.disk.views.values())
      if (of === "pods") for (const [key, object] of known) known.set(key, { ...object, body: undefined });
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart(options), false);
    second.pods.change(change("Modified", "moves", 14, { spec: { of: "c" } }));
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["c@11 <- Modified pods moves", "a@11 <- Modified pods moves"]);
    second.runner.deliveries.length = 0;
    second.pods.list("relist", undefined).end(resourceVersion("20"));
    await second.clock.advance(1_000);
    expect(runs(second).sort()).toEqual(["b@11 <- Deleted pods ends", "c@11 <- Deleted pods moves"]);
  });
});
