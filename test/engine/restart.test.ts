import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { change, DispatchFixture, done, failure, manifest, quiet, trigger } from "./fixture.ts";

describe("a restart", () => {
  it("delivers events that had begun again, flagged and as the next attempt, and others unflagged", async () => {
    const first = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
    first.runner.answer = () => undefined;
    const changes = [change("Added", "a", 11), change("Added", "b", 12)];
    for (const it of changes) first.subscription.change(it);
    await quiet(first.runner);
    const second = await first.restart();
    expect(second.subscription.resumeFrom).toBe("1");
    second.runner.answer = () => done;
    for (const it of changes) second.subscription.change(it);
    await quiet(second.runner);
    expect(second.runner.told).toEqual(["Added a@11", "Added a@11 #2 !", "Added b@12"]);
  });

  it("keeps the time that a handler named by RetryAfter, and makes no attempt before", async () => {
    const hour = 3_600_000;
    const first = await (await DispatchFixture.open()).listed();
    first.runner.answer = () => failure("later", hour);
    first.subscription.change(change("Added", "a", 11));
    await quiet(first.runner);
    await first.clock.advance(hour / 2);
    let last = first;
    for (const ends of ["killed", "drained"]) {
      if (ends === "drained") await last.drain();
      last = await last.restart();
      await quiet(last.runner);
      await last.clock.advance(1_000);
    }
    expect(last.runner.told).toEqual(["Added a@11"]);
    last.runner.answer = () => done;
    await last.clock.advance(hour);
    await quiet(last.runner);
    expect(last.runner.told).toEqual(["Added a@11", "Added a@11 #2 !"]);
  });

  it("does not deliver again what was done, though history sends it", async () => {
    const first = await (await DispatchFixture.open()).listed();
    const changes = Array.from({ length: 50 }, (_, index) => change("Added", `n${index}`, 11 + index));
    for (const it of changes) first.subscription.change(it);
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await first.restart();
    for (const it of changes) second.subscription.change(it);
    await quiet(second.runner);
    expect(second.runner.deliveries).toHaveLength(50);
  });

  it("after a drain resumes where it was, without a list and without a delivery", async () => {
    const first = await (await DispatchFixture.open()).listed();
    for (let rv = 11; rv < 20; rv++) first.subscription.change(change("Added", `n${rv}`, rv));
    first.subscription.bookmark(resourceVersion("25"));
    await quiet(first.runner);
    expect(await first.drain()).toBe(true);
    const second = await first.restart();
    expect(second.subscription.resumeFrom).toBe("25");
    expect(second.runner.deliveries).toHaveLength(9);
  });

  it("tells by a list what happened while history was lost, each net change once", async () => {
    const first = await DispatchFixture.open();
    await first.list(9, [
      change("Added", "kept", 5),
      change("Added", "changed", 6),
      change("Added", "gone", 7, { spec: "last" }),
    ]);
    await first.clock.advance(1_000);
    const second = await first.restart({ manifest: manifest({ concurrency: 1 }) });
    second.runner.deliveries.length = 0;
    const list = [change("Added", "kept", 5), change("Added", "changed", 16), change("Added", "new", 15)];
    await second.list(20, list);
    await quiet(second.runner);
    expect(second.runner.told).toEqual(["Deleted gone@7", "Added new@15", "Modified changed@16"]);
    const gone = second.runner.deliveries[0];
    expect(gone?.flags).toEqual({
      synthetic: true,
      reason: "relist",
      gap: { from: "9", to: "20" },
      finalStateUnknown: true,
    });
    expect(JSON.parse(gone?.body.toString() ?? "").spec).toBe("last");
    await second.list(21, list);
    expect(second.runner.deliveries).toHaveLength(3);
  });

  it("keeps the deletion of an object that a handler may have seen just before the end", async () => {
    const first = await DispatchFixture.open();
    first.runner.answer = () => undefined;
    first.subscription.list("initial", undefined).item(change("Added", "a", 5));
    await quiet(first.runner);
    expect(first.runner.told).toEqual(["Added a@5"]);
    const second = await first.restart();
    second.runner.answer = () => done;
    await second.list(20, [], "initial");
    expect(second.runner.told).toEqual(["Added a@5", "Deleted a@5"]);
  });

  it("flags the Added of an object whose Added had begun, also where a list shows a later state of it, and that alone", async () => {
    const first = await (await DispatchFixture.open()).listed();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "a", 11));
    await quiet(first.runner);
    const second = await first.restart();
    second.runner.answer = () => done;
    await second.list(20, [change("Added", "a", 14), change("Added", "b", 15)]);
    await quiet(second.runner);
    await second.list(30, [change("Added", "b", 15)]);
    await second.list(40, [change("Added", "a", 34), change("Added", "b", 15)]);
    await quiet(second.runner);
    expect(second.runner.told).toEqual(["Added a@11", "Added a@14 !", "Added b@15", "Deleted a@14", "Added a@34"]);
  });

  it("flags a deletion that had begun once, and not a later one of the same object", async () => {
    const selecting = manifest({}, [trigger({ labelSelector: "team=a" })]);
    const first = await DispatchFixture.open({ manifest: selecting });
    await first.list(9, [change("Added", "a", 5)], "initial");
    await first.clock.advance(1_000);
    first.runner.answer = () => undefined;
    first.subscription.change(change("Deleted", "a", 11));
    await quiet(first.runner);
    const second = await first.restart({ manifest: selecting });
    second.runner.answer = () => done;
    await second.list(20, []);
    await second.list(30, [change("Added", "a", 25)]);
    await second.list(40, []);
    await quiet(second.runner);
    expect(second.runner.told.slice(1)).toEqual(["Deleted a@11", "Deleted a@5 !", "Added a@25", "Deleted a@25"]);
  });

  it("counts attempts across crashes, and gives an event up that the runtime never survives", async () => {
    let it = await (
      await DispatchFixture.open({ manifest: manifest({ retry: { ...manifest().delivery.retry, maxAttempts: 2 } }) })
    ).listed();
    const options = { manifest: manifest({ retry: { ...manifest().delivery.retry, maxAttempts: 2 } }) };
    it.runner.answer = () => undefined;
    for (let crash = 0; crash < 6; crash++) {
      it.subscription.change(change("Added", "a", 11));
      await quiet(it.runner);
      it = await it.restart(options);
    }
    expect(it.runner.deliveries.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect((await it.store.deadLetters())[0]?.error.code).toBe("WF_DISPATCH_CRASH_LOOP");
  });

  it("after a power loss flags what comes until the server's newest has come, and no more", async () => {
    const first = await (await DispatchFixture.open()).listed();
    await first.drain();
    first.disk.end = "power-loss";
    const second = await DispatchFixture.open({ clock: first.clock, runner: first.runner, disk: first.disk });
    second.subscription.change(change("Added", "a", 11));
    second.subscription.bookmark(resourceVersion("11"));
    second.subscription.change(change("Added", "b", 12));
    second.subscription.serverIsAt(resourceVersion("13"));
    second.subscription.bookmark(resourceVersion("13"));
    second.subscription.change(change("Added", "c", 14));
    await quiet(second.runner);
    expect(second.runner.told).toEqual(["Added a@11 !", "Added b@12 !", "Added c@14"]);
  });

  it("with other selectors tells of what came and went, and of nothing else", async () => {
    const first = await DispatchFixture.open({ selection: "app=old" });
    await first.list(9, [change("Added", "both", 5), change("Added", "old", 6)]);
    await first.clock.advance(1_000);
    const second = await first.restart({ selection: "app=new", manifest: manifest({ concurrency: 1 }) });
    expect(second.subscription.resumeFrom).toBeUndefined();
    second.runner.deliveries.length = 0;
    await second.list(20, [change("Added", "both", 5), change("Added", "new", 4)]);
    await quiet(second.runner);
    expect(second.runner.deliveries.map((it) => [it.type, it.object.name, it.flags.reason])).toEqual([
      ["Deleted", "old", "unselected"],
      ["Added", "new", "selected"],
    ]);
    await second.clock.advance(1_000);
    expect((await second.restart({ selection: "app=new" })).subscription.resumeFrom).toBe("20");
  });

  it("with fewer namespaces tells of those left, and listing what remains is silent", async () => {
    const first = await DispatchFixture.open();
    await first.list(9, [change("Added", "a", 5), change("Added", "b", 6, { namespace: "team-b" })]);
    await first.clock.advance(1_000);
    const names = { type: "names", names: ["team-a"] } as const;
    const second = await first.restart({
      manifest: manifest({}, [trigger({ namespaces: names })]),
      namespace: "team-a",
    });
    await quiet(second.runner);
    await second.list(20, [change("Added", "a", 5)]);
    const told = second.runner.deliveries.slice(2);
    expect(told.map((it) => [it.type, it.object.name, it.flags.reason])).toEqual([["Deleted", "b", "unselected"]]);
  });

  it("finds a removed function's position again within its time, and not after it", async () => {
    const first = await (await DispatchFixture.open()).listed(7);
    await first.dispatcher.remove("copy", { retire: true });
    await first.clock.advance(6 * 24 * 3_600_000);
    const second = await first.restart();
    expect(second.subscription.resumeFrom).toBe("7");
    await second.dispatcher.remove("copy", { retire: true });
    await second.clock.advance(7 * 24 * 3_600_000 + 1);
    expect((await second.restart()).subscription.resumeFrom).toBeUndefined();
  });

  it("a failing attempt that waits for its retry is tried at once with new code", async () => {
    const it = await (
      await DispatchFixture.open({
        manifest: manifest({ onFailure: "Block", retry: { ...manifest().delivery.retry, maxAttempts: 1 } }),
      })
    ).listed();
    it.runner.answer = () => failure();
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    expect(it.function.status().blockedLanes).toBe(1);
    await it.function.replace(manifest(), false, async () => {
      it.runner.answer = () => done;
    });
    await quiet(it.runner);
    expect([it.runner.told.at(-1), it.function.status().blockedLanes]).toEqual(["Added a@11 #2 !", 0]);
  });
});
