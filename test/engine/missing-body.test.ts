import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Trigger } from "../../runtime/manifest/function.ts";
import { change, DispatchFixture, type DispatchOptions, manifest, quiet, trigger } from "./fixture.ts";

const when = (expression: string, over: Partial<Trigger> = {}): DispatchOptions => ({
  manifest: manifest({}, [trigger({ matchConditions: [{ name: "c", expression }], ...over })]),
});

/** Ends the process cleanly and starts the next one on a store without bodies, like the store in Secrets. */
async function handedOver(it: DispatchFixture, options: DispatchOptions): Promise<DispatchFixture> {
  it.subscription.bookmark(resourceVersion("20"));
  await it.drain();
  for (const { known } of it.disk.views.values()) {
    for (const [key, state] of known) known.set(key, { ...state, body: undefined });
  }
  it.runner.deliveries.length = 0;
  return DispatchFixture.open({ clock: it.clock, runner: it.runner, disk: it.disk, ...options });
}

describe("where no body of an object is kept any more", () => {
  it.each([
    { asked: "each event", events: undefined },
    { asked: "deletions alone", events: ["Deleted"] },
  ] as const)(
    "its Deleted that a list finds is delivered if it matched, and only then, to a trigger of $asked",
    async ({ events }) => {
      const options = when('object.spec.sync == "yes"', events && { events });
      const first = await (await DispatchFixture.open(options)).listed();
      first.subscription.change(change("Added", "matched", 11, { spec: { sync: "yes" } }));
      first.subscription.change(change("Added", "unmatched", 12, { spec: { sync: "no" } }));
      await quiet(first.runner);
      const next = await handedOver(first, options);
      await next.list(30, []);
      await quiet(next.runner);
      expect(next.runner.told).toEqual(["Deleted matched@11"]);
    },
  );

  it("a condition that compares does not keep its next Modified from being told, and then compares again", async () => {
    const options = when("object.spec.n != oldObject.spec.n");
    const first = await (await DispatchFixture.open(options)).listed();
    first.subscription.change(change("Added", "a", 11, { spec: { n: 1 } }));
    await quiet(first.runner);
    const next = await handedOver(first, options);
    next.subscription.change(change("Modified", "a", 31, { spec: { n: 5 } }));
    next.subscription.change(change("Modified", "a", 32, { spec: { n: 5 } }));
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Modified a@31"]);
  });
});

it("a condition that compares, added to a trigger that kept no bodies, does not swallow an object's next change", async () => {
  const events = ["Added", "Modified"] as const;
  const first = await (await DispatchFixture.open({ manifest: manifest({}, [trigger({ events })]) })).listed();
  first.subscription.change(change("Added", "a", 11, { spec: { n: 1 } }));
  await quiet(first.runner);
  first.subscription.bookmark(resourceVersion("20"));
  await first.drain();
  const next = await first.restart(when("object.spec.n != oldObject.spec.n", { events }));
  next.runner.deliveries.length = 0;
  next.subscription.change(change("Modified", "a", 31, { spec: { n: 5 } }));
  await quiet(next.runner);
  expect(next.runner.told).toEqual(["Modified a@31"]);
});
