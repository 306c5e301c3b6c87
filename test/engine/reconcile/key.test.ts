import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { headerOf, readSpilled } from "../../../runtime/journal/rows.ts";
import { change, DispatchFixture, done, quiet } from "../fixture.ts";
import { byLabel, open, owned, reconciler, runs, withPods } from "./fixture.ts";

describe("a key", () => {
  it("runs once for all that waited while it ran, with the newest state, and never twice at once", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Added", "shop", 11));
    await quiet(fixture.runner);
    fixture.subscription.change(change("Modified", "shop", 12));
    fixture.subscription.change(change("Modified", "shop", 13));
    fixture.pods.change(owned("Added", "web", 14, "shop"));
    fixture.pods.change(owned("Added", "db", 15, "shop"));
    await quiet(fixture.runner);
    expect(fixture.runner.deliveries).toHaveLength(1);
    await fixture.runner.end("shop");
    await fixture.runner.end("shop");
    expect(runs(fixture)).toEqual([
      "shop@11 <- Added settings shop",
      "shop@13 <- Modified settings shop, Added pods web, Added pods db",
    ]);
    await fixture.clock.advance(1_000);
    expect(fixture.disk.spill.size).toBe(0);
  });

  it("brings the newest state of each change that woke it, against which reads are held, and tells nobody else", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Added", "shop", 11));
    await quiet(fixture.runner);
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    for (const rv of [13, 15]) fixture.pods.change(owned("Modified", "web", rv, "shop"));
    fixture.pods.change(owned("Added", "db", 16, "shop"));
    fixture.pods.change(owned("Deleted", "db", 17, "shop"));
    await quiet(fixture.runner);
    const rows = JSON.stringify([...fixture.disk.spill.values()].map((row) => row.kind === "key" && row.pending));
    await fixture.runner.end("shop");
    const { seen = [], causes } = fixture.runner.deliveries[1] ?? {};
    expect(seen.map(({ trigger: of, type, object, resourceVersion: at }) => [of, type, object.name, at])).toEqual([
      ["pods", "Modified", "web", "15"],
      ["pods", "Deleted", "db", "17"],
    ]);
    expect(rows + JSON.stringify(causes)).not.toMatch(/seen|resourceVersion/);
  });

  it("is told of its object's end by its absence", async () => {
    const fixture = await open();
    fixture.subscription.change(change("Added", "shop", 11));
    await quiet(fixture.runner);
    fixture.subscription.change(change("Deleted", "shop", 12));
    await quiet(fixture.runner);
    expect(runs(fixture)).toEqual(["shop@11 <- Added settings shop", "shop@gone <- Deleted settings shop"]);
  });

  it("is woken where an object comes from, and where it goes to", async () => {
    const fixture = await open({ manifest: reconciler({}, byLabel) });
    for (const name of ["a", "b"]) fixture.subscription.change(change("Added", name, 11));
    await quiet(fixture.runner);
    fixture.runner.deliveries.length = 0;
    fixture.pods.change(change("Added", "pod", 12, { spec: { of: "a" } }));
    await quiet(fixture.runner);
    fixture.pods.change(change("Modified", "pod", 13, { spec: { of: ["b", "team-a/a"] } }));
    await quiet(fixture.runner);
    fixture.pods.change(change("Modified", "pod", 14, { spec: { of: "b" } }));
    await quiet(fixture.runner);
    fixture.pods.change(change("Deleted", "pod", 15, { spec: { of: "b" } }));
    await quiet(fixture.runner);
    expect(runs(fixture)).toEqual([
      "a@11 <- Added pods pod",
      "b@11 <- Modified pods pod",
      "a@11 <- Modified pods pod",
      "b@11 <- Modified pods pod",
      "a@11 <- Modified pods pod",
      "b@11 <- Deleted pods pod",
    ]);
  });

  it("runs only once its object is known, or known to be gone", async () => {
    const fixture = await withPods(await DispatchFixture.open({ manifest: reconciler() }), false);
    fixture.pods.list("initial", undefined).end(resourceVersion("1"));
    fixture.pods.change(owned("Added", "web", 11, "shop"));
    await fixture.clock.advance(60_000);
    expect(fixture.runner.deliveries).toEqual([]);
    await fixture.list(5, [change("Added", "shop", 4)], "initial");
    await fixture.clock.advance(1_000);
    expect(runs(fixture)).toEqual(["shop@4 <- Added pods web, Added settings shop"]);
  });

  it.each(["Dev Team", "grüppe", "a#b", "system:x?y", "..."])(
    "may be %j, as names of RBAC's kinds are",
    async (name) => {
      const fixture = await open({ manifest: reconciler({}, byLabel) });
      fixture.pods.change(change("Added", "pod", 11, { spec: { of: name } }));
      await quiet(fixture.runner);
      expect(runs(fixture)).toEqual([`${name}@gone <- Added pods pod`]);
    },
  );

  it.each(["..", ".", "a%2fb", "a/b/c", "Other/a", "../a", ""])("is never %j, which no object can be", async (name) => {
    const fixture = await open({ manifest: reconciler({}, byLabel) });
    fixture.pods.change(change("Added", "pod", 11, { spec: { of: name } }));
    await quiet(fixture.runner);
    expect(runs(fixture)).toEqual([]);
  });

  it("is the owner's own where that has no namespace", async () => {
    const fixture = await open();
    fixture.subscription.change(change("Added", "shop", 11, { namespace: "" }));
    await quiet(fixture.runner);
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(fixture.runner);
    expect(fixture.runner.deliveries.map(({ object }) => object.namespace)).toEqual(["", ""]);
    expect(runs(fixture)).toEqual(["shop@11 <- Added settings shop", "shop@11 <- Added pods web"]);
  });

  it("is the owner's own also after the end of that, and so never runs twice at once", async () => {
    const fixture = await open();
    fixture.subscription.change(change("Added", "shop", 11, { namespace: "" }));
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(fixture.runner);
    fixture.runner.deliveries.length = 0;
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Deleted", "shop", 13, { namespace: "" }));
    await quiet(fixture.runner);
    fixture.pods.change(owned("Deleted", "web", 14, "shop"));
    await quiet(fixture.runner);
    expect(runs(fixture)).toEqual(["shop@gone <- Deleted settings shop"]);
    await fixture.runner.end("shop");
    expect(fixture.runner.deliveries.map(({ object }) => object.namespace)).toEqual(["", ""]);
  });

  it("whose run was cut off by the end of the process runs again, flagged", async () => {
    const first = await open();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await first.restart({ manifest: reconciler() });
    await withPods(second, false);
    second.runner.answer = () => done;
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["shop@11 <- Added settings shop", "shop@11 <- Added settings shop #2 !"]);
    await second.clock.advance(1_000);
    expect([second.disk.spill.size, second.disk.begun.size]).toEqual([0, 0]);
  });

  it("runs again at once also where wall time was set back while the process was down", async () => {
    const first = await open();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.clock.step(-3_600_000);
    const second = await first.restart({ manifest: reconciler() });
    await withPods(second, false);
    second.runner.answer = () => done;
    await second.clock.advance(1_000);
    expect(runs(second)).toHaveLength(2);
  });

  it("runs again also where an older runtime wrote its row, as an event without a kind", async () => {
    const first = await open();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    for (const [place, row] of first.disk.spill) {
      const { kind, ...old } = JSON.parse(headerOf(row));
      expect(kind).toBe("key");
      first.disk.spill.set(place, readSpilled({ header: JSON.stringify(old), body: row.body }));
    }
    const second = await first.restart({ manifest: reconciler() });
    await withPods(second, false);
    second.runner.answer = () => done;
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["shop@11 <- Added settings shop", "shop@11 <- Added settings shop #2 !"]);
    expect(second.disk.spill.size).toBe(0);
  });

  it("does not hold the position up while it runs, or waits", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Added", "shop", 11));
    fixture.subscription.bookmark(resourceVersion("20"));
    await quiet(fixture.runner);
    await fixture.clock.advance(1_000);
    expect(fixture.subscription.lowWaterMark).toBe("20");
    expect(fixture.runner.open.size).toBe(1);
  });
});
