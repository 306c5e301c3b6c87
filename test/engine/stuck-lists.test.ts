import { describe, expect, it } from "vitest";
import { change, DispatchFixture, done, failure, manifest, quiet, trigger } from "./fixture.ts";

const stuck = change("Added", "stuck", 5, { spec: "last" });
const fine = change("Added", "fine", 6);
const hangs = ({ object }: { object: { name: string } }) => (object.name === "stuck" ? undefined : done);

/** A process that has read its first list, one event of which does not end. */
async function withStuckEvent(options: Parameters<typeof DispatchFixture.open>[0] = {}): Promise<DispatchFixture> {
  const it = await DispatchFixture.open(options);
  it.runner.answer = hangs;
  await it.list(9, [stuck, fine], "initial");
  await quiet(it.runner);
  expect(it.function.status().ready).toBe(true);
  await it.clock.advance(1_000);
  return it;
}

describe("a function whose initial event is stuck", () => {
  it("resumes from its list at a restart, and is told that event alone again, flagged and still initial", async () => {
    const first = await withStuckEvent();
    const next = await first.restart();
    expect(next.subscription.resumeFrom).toBe("9");
    await quiet(next.runner);
    expect(next.runner.told.sort()).toEqual(["Added fine@6", "Added stuck@5", "Added stuck@5 #2 !"]);
    const again = next.runner.deliveries.at(-1);
    expect(again?.flags).toEqual({ initial: true });
    expect(again?.body).toEqual(stuck.body);
  });

  it("resumes from its list where that event is blocked, or waits for its retry", async () => {
    for (const onFailure of ["Block", "DeadLetter"] as const) {
      const options = { manifest: manifest({ onFailure, retry: { ...manifest().delivery.retry, maxAttempts: 2 } }) };
      const first = await DispatchFixture.open(options);
      first.runner.answer = ({ object }) => (object.name === "stuck" ? failure() : done);
      await first.list(9, [stuck, fine], "initial");
      await quiet(first.runner);
      if (onFailure === "Block") await first.clock.advance(1_000);
      const next = await first.restart(options);
      expect(next.subscription.resumeFrom).toBe("9");
    }
  });

  it("is told of what happened meanwhile, and nothing of that is initial", async () => {
    const next = await (await withStuckEvent()).restart();
    for (const it of [change("Added", "x", 11), change("Modified", "fine", 12), change("Deleted", "x", 13)])
      next.subscription.change(it);
    await quiet(next.runner);
    const told = next.runner.deliveries.slice(2).filter(({ object }) => object.name !== "stuck");
    expect(told.map((it) => [it.type, it.object.name, it.flags])).toEqual([
      ["Added", "x", {}],
      ["Modified", "fine", {}],
      ["Deleted", "x", {}],
    ]);
  });

  it("takes nothing for initial that a list after lost history shows", async () => {
    const next = await (await withStuckEvent()).restart();
    await next.list(30, [stuck, fine, change("Added", "new", 20)]);
    await quiet(next.runner);
    const told = next.runner.deliveries.slice(2).filter(({ object }) => object.name === "new");
    expect(told.map(({ flags }) => [flags.initial, flags.reason])).toEqual([[undefined, "relist"]]);
  });

  it("skips nothing that was created after its list, where what was there is skipped", async () => {
    const skips = { manifest: manifest({}, [trigger({ initialEvents: "Skip" })]) };
    const first = await DispatchFixture.open(skips);
    const half = first.subscription.list("initial", undefined);
    half.item(stuck);
    half.abort();
    first.runner.answer = hangs;
    await first.list(9, [change("Modified", "stuck", 8)], "initial");
    await quiet(first.runner);
    const next = await first.restart(skips);
    expect(next.subscription.resumeFrom).toBe("9");
    next.subscription.change(change("Added", "new", 20));
    await quiet(next.runner);
    expect(next.runner.told.sort()).toEqual(["Added new@20", "Modified stuck@8", "Modified stuck@8 #2 !"]);
  });
});

it("a Deleted of an object whose initial event never ended has its last body", async () => {
  const next = await (await withStuckEvent()).restart();
  await next.list(30, [fine]);
  next.runner.answer = () => done;
  await next.runner.end("stuck");
  const [added, deleted] = next.runner.deliveries.slice(-2);
  expect([added?.type, deleted?.type, deleted?.object.name]).toEqual(["Added", "Deleted", "stuck"]);
  expect(JSON.parse(deleted?.body.toString() ?? "").spec).toBe("last");
});

it("a function with a stuck event of a later list resumes from that list at a restart", async () => {
  const first = await (await DispatchFixture.open()).listed(2);
  await first.clock.advance(1_000);
  first.runner.answer = hangs;
  await first.list(9, [stuck, fine]);
  await quiet(first.runner);
  await first.clock.advance(1_000);
  const next = await first.restart();
  expect(next.subscription.resumeFrom).toBe("9");
  await quiet(next.runner);
  expect(next.runner.told.filter((told) => told.includes("stuck"))).toEqual(["Added stuck@5", "Added stuck@5 #2 !"]);
});
