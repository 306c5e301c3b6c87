import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { change, DispatchFixture, done, quiet } from "./fixture.ts";

/** A function that knows `a` in its state at 5, on a cluster at 9. */
async function knowing(): Promise<DispatchFixture> {
  const it = await DispatchFixture.open();
  await it.list(9, [change("Added", "a", 5)], "initial");
  it.subscription.bookmark(resourceVersion("9"));
  await quiet(it.runner);
  await it.clock.advance(1_000);
  return it;
}

/** Starts on a change, and is killed before its handler has ended. */
async function dyingOf(it: DispatchFixture, next: ReturnType<typeof change>): Promise<DispatchFixture> {
  it.runner.answer = () => undefined;
  it.subscription.change(next);
  await quiet(it.runner);
  const after = await it.restart();
  it.runner.answer = () => done;
  return after;
}

describe("after the cluster was restored from a backup", () => {
  it("what a handler had begun to hear when the process died is known to be newer than the cluster", async () => {
    const it = await dyingOf(await knowing(), change("Modified", "a", 12));
    expect(it.subscription.newestKnown).toBe("12");
  });

  it("an object is told again as it was, where a later state of it had begun when the process died", async () => {
    const it = await dyingOf(await knowing(), change("Modified", "a", 12));
    await it.list(9, [change("Added", "a", 5)], "rv-rewind");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@5", "Modified a@12", "Modified a@5 !"]);
  });

  it("an object is told as Added again, flagged, where its deletion had begun when the process died", async () => {
    const it = await dyingOf(await knowing(), change("Deleted", "a", 12));
    await it.list(9, [change("Added", "a", 5)], "rv-rewind");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@5", "Deleted a@12", "Added a@5 !"]);
  });

  it("what is told of it and had begun comes again flagged, though the state before was newer", async () => {
    const it = await knowing();
    it.subscription.change(change("Modified", "a", 12));
    await quiet(it.runner);
    it.runner.answer = () => undefined;
    await it.list(9, [change("Added", "a", 5)], "rv-rewind");
    await quiet(it.runner);
    const next = await it.restart();
    it.runner.answer = () => done;
    await next.list(9, [change("Added", "a", 5)]);
    await quiet(it.runner);
    expect(it.runner.told.slice(2)).toEqual(["Modified a@5", "Modified a@5 #2 !"]);
  });

  it("the position from before is not resumed from, whatever happens before the restored state is handled", async () => {
    const it = await knowing();
    it.runner.answer = () => undefined;
    await it.list(7, [change("Added", "a", 3)], "rv-rewind");
    await quiet(it.runner);
    const next = await it.restart();
    expect(next.subscription.resumeFrom).not.toBe("9");
  });

  it("the position from before is not resumed from, though the list that follows is not given, and the process dies", async () => {
    const it = await knowing();
    it.subscription.rewound();
    expect(it.subscription.resumeFrom).toBeUndefined();
    await it.clock.advance(1_000);
    const next = await it.restart();
    expect(next.subscription.resumeFrom).toBeUndefined();
    await next.list(12, [change("Added", "a", 4)]);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@5", "Modified a@4"]);
  });

  it("a deletion that was told before does not hide an object created anew, which is shown by a change", async () => {
    const it = await knowing();
    it.subscription.change(change("Deleted", "a", 900));
    await quiet(it.runner);
    it.subscription.rewound();
    await it.list(40, [], "rv-rewind");
    it.subscription.change(change("Added", "a", 50, { uid: "uid-new" }));
    it.subscription.change(change("Added", "b", 51));
    await quiet(it.runner);
    expect(it.runner.told.slice(2)).toEqual(["Added a@50", "Added b@51"]);
  });

  it("a deletion that waits from before does not hide an object created anew", async () => {
    const it = await knowing();
    it.runner.answer = () => undefined;
    it.subscription.change(change("Deleted", "a", 12));
    await quiet(it.runner);
    await it.list(4, [], "rv-rewind");
    it.subscription.change(change("Added", "a", 8, { uid: "uid-a2" }));
    await it.runner.end("a");
    expect(it.runner.told).toEqual(["Added a@5", "Deleted a@12", "Added a@8"]);
  });

  it("a deletion that waited on disk from before does not hide one either", async () => {
    const it = await knowing();
    it.runner.answer = () => undefined;
    it.subscription.change(change("Deleted", "a", 12));
    await it.clock.advance(70_000);
    await it.list(4, [], "rv-rewind");
    await it.clock.advance(1_000);
    const next = await it.restart();
    expect(next.subscription.resumeFrom).toBe("4");
    next.subscription.change(change("Added", "a", 8, { uid: "uid-a2" }));
    await quiet(it.runner);
    it.runner.answer = () => done;
    await it.runner.end("a");
    expect(it.runner.told.slice(2)).toEqual(["Deleted a@12 #2 !", "Added a@8"]);
  });

  it("a first list that broke off is known to be newer than the cluster", async () => {
    const it = await DispatchFixture.open();
    const list = it.subscription.list("initial", undefined);
    list.item(change("Added", "a", 5));
    list.abort();
    expect(it.subscription.newestKnown).toBe("5");
  });
});
