import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { change, DispatchFixture, done, quiet } from "./fixture.ts";

/** The objects on disk, tombstones included. */
const rows = (it: DispatchFixture) => [...([...it.disk.views.values()][0]?.known.keys() ?? [])];

describe("an API whose resourceVersions have no order", () => {
  it("leaves no tombstone behind once all that was received is done", async () => {
    const it = await (await DispatchFixture.open()).listed();
    for (const name of ["a", "b", "c"]) {
      it.subscription.change(change("Added", name, `${name}-came`));
      it.subscription.change(change("Deleted", name, `${name}-went`));
    }
    await quiet(it.runner);
    it.subscription.bookmark(resourceVersion("quiet"));
    await it.clock.advance(1_000);
    expect(rows(it)).toEqual([]);
  });

  it("keeps a tombstone while an event from before it is not done", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = ({ object }) => (object.name === "stuck" ? undefined : done);
    it.subscription.change(change("Added", "stuck", "x"));
    it.subscription.change(change("Added", "a", "y"));
    it.subscription.change(change("Deleted", "a", "z"));
    it.subscription.bookmark(resourceVersion("quiet"));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect(rows(it)).toEqual(["team-a/a"]);
    await it.runner.end("stuck");
    await it.clock.advance(1_000);
    expect(rows(it)).toEqual(["team-a/stuck"]);
  });

  it("leaves no tombstone of a process before that died, and what it may have told before comes flagged", async () => {
    const first = await (await DispatchFixture.open()).listed();
    first.runner.answer = ({ object }) => (object.name === "stuck" ? undefined : done);
    for (const it of [change("Added", "stuck", "u"), change("Added", "a", "v"), change("Deleted", "a", "w")])
      first.subscription.change(it);
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const next = await first.restart();
    next.runner.answer = () => done;
    await next.list(9, []);
    await quiet(next.runner);
    next.subscription.bookmark(resourceVersion("10"));
    await next.clock.advance(1_000);
    expect(rows(next)).toEqual([]);
    expect(next.runner.told.slice(3)).toEqual(["Deleted stuck@u", "Deleted a@v !"]);
  });
});

describe("a deletion that carries the object's own resourceVersion", () => {
  const own = change("Deleted", "a", 11);

  it("is news while the object stands there, and takes nobody back to an older position", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.subscription.change(change("Added", "a", 11));
    it.subscription.change(change("Added", "b", 15));
    expect([it.subscription.isNews(own), it.subscription.isNews(change("Deleted", "b", 11))]).toEqual([true, false]);
    it.subscription.change(own);
    expect([it.subscription.isNews(own), it.subscription.resumeFrom]).toEqual([false, "15"]);
  });

  it("is told though the mark has passed that, and once", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.subscription.change(change("Added", "a", 11));
    it.subscription.bookmark(resourceVersion("20"));
    await quiet(it.runner);
    it.subscription.change(own);
    it.subscription.bookmark(resourceVersion("30"));
    it.subscription.change(own);
    await quiet(it.runner);
    it.subscription.change(own);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Deleted a@11"]);
  });

  it("comes flagged after the deaths of two that had begun it, and of one that had not", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.subscription.change(change("Added", "a", 11));
    it.subscription.bookmark(resourceVersion("20"));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    it.runner.answer = () => undefined;
    it.subscription.change(own);
    await quiet(it.runner);
    const second = await it.restart();
    second.subscription.change(own);
    await quiet(it.runner);
    // An attempt may have both records: the first is removed by the commit after that of the second.
    const rows = [...it.disk.begun.values()];
    for (const { started } of rows) {
      const first = started.map((event) => ({ ...event, attempt: event.attempt - 1 }));
      it.disk.begun.set(0, { id: 0, started: first });
    }
    const third = await second.restart();
    await third.clock.advance(1_000);
    const fourth = await third.restart();
    fourth.runner.answer = () => done;
    fourth.subscription.change(own);
    await quiet(it.runner);
    expect(it.runner.told.slice(1)).toEqual(["Deleted a@11", "Deleted a@11 #2 !", "Deleted a@11 #3 !"]);
  });

  it("comes flagged where it had begun when the process died", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.subscription.change(change("Added", "a", 11));
    it.subscription.bookmark(resourceVersion("20"));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    it.runner.answer = () => undefined;
    it.subscription.change(own);
    await quiet(it.runner);
    const next = await it.restart();
    expect(next.subscription.resumeFrom).toBe("20");
    next.runner.answer = () => done;
    next.subscription.change(own);
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Added a@11", "Deleted a@11", "Deleted a@11 #2 !"]);
  });
});
