import { expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { change, DispatchFixture, done, failure, manifest, trigger } from "./fixture.ts";

const megabyte = 1 << 20;
const spec = "x".repeat(megabyte);

/** A trigger whose changes are judged, so that it waits for its turn where it is over its share. */
const judged = trigger({ matchConditions: [{ name: "own", expression: "object.spec != 'y'" }] });

/** Milliseconds that the function was charged for rows. */
const rowsMs = (of: DispatchFixture): number => 1_000 * (of.function.status().parentSeconds.get("rows") ?? 0);

/** A source that keeps a history: a subscription that has stepped aside receives it from its checkpoint when it comes back. */
function sourceOf(of: DispatchFixture) {
  const history: ReturnType<typeof change>[] = [];
  const source = { left: 0, isAway: false };
  const give = (from: number) => {
    for (const each of history) {
      if (source.isAway) return;
      if (Number(each.meta.resourceVersion) > from) of.subscription.change(each);
    }
  };
  of.subscription.placed({
    stepAside: async (room) => {
      source.left++;
      source.isAway = true;
      await room();
      source.isAway = false;
      give(Number(of.subscription.resumeFrom));
    },
  });
  const write = (each: ReturnType<typeof change>) => {
    history.push(each);
    if (!source.isAway) of.subscription.change(each);
  };
  return { source, write };
}

it.each([
  ["asks to run again in an hour", {}],
  [
    "fails for good and blocks",
    { onFailure: "Block", retry: { maxAttempts: 2, initialDelayMs: 10_000, maxDelayMs: 10_000, factor: 1 } },
  ],
] as const)("a large object whose handler %s does not hold up its function's other objects", async (_, delivery) => {
  const of = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 4, ...delivery }) })).listed();
  of.runner.answer = ({ object, attempt }) => {
    if (object.name !== "hot") return done;
    return failure("no", "onFailure" in delivery ? undefined : attempt === 1 ? 10_000 : 3_600_000);
  };
  const { source, write } = sourceOf(of);
  let version = 11;
  const hot = (): void => write(change(version === 11 ? "Added" : "Modified", "hot", version++, { spec }));
  for (let count = 0; count < 40; count++) {
    hot();
    await of.clock.advance(245);
  }
  // A burst, while the retry becomes due and waits for its turn.
  while (of.clock.monotonic() < 10_400) {
    hot();
    await of.clock.advance(20);
  }
  for (let count = 0; count < 20; count++) {
    write(change("Added", `cold${count}`, version++));
    await of.clock.advance(1_000);
  }
  await of.clock.advance(60_000);
  expect(source.left).toBeGreaterThan(0);
  expect(of.runner.told.filter((told) => told.includes("cold"))).toHaveLength(20);
});

it("a paused function whose objects came in a burst goes on with its position", async () => {
  const of = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 4 }, [judged]) })).listed();
  const { source, write } = sourceOf(of);
  of.function.hold();
  let version = 11;
  for (; version < 51; version++) {
    write(change("Added", `n${version}`, version, { spec }));
    await of.clock.advance(2_000);
  }
  await of.clock.advance(60_000);
  for (; version < 91; version++) {
    write(change("Added", `n${version}`, version, { spec }));
    await of.clock.advance(2);
  }
  await of.clock.advance(60_000);
  write(change("Added", "late", version));
  await of.clock.advance(60_000);
  expect(source.left).toBeGreaterThan(0);
  expect([source.isAway, of.subscription.resumeFrom]).toEqual([false, String(version)]);
});

it("a function over its share leaves its source a few times at most, and all is told", async () => {
  const of = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 4 }) })).listed();
  of.runner.answer = () => new Promise((resolve) => of.clock.after(20, () => resolve(done)));
  const { source, write } = sourceOf(of);
  for (let count = 0; count < 220; count++) {
    write(change("Added", `n${count}`, 11 + count, { spec }));
    await of.clock.advance(2);
  }
  await of.clock.advance(10_000);
  expect(source.left).toBeGreaterThan(0);
  expect(source.left).toBeLessThan(10);
  expect(of.runner.told).toEqual(Array.from({ length: 220 }, (_, count) => `Added n${count}@${11 + count}`));
});

it("a list in progress is read to its end, although its function is over its share", async () => {
  const of = await DispatchFixture.open({ manifest: manifest({ concurrency: 4 }) });
  of.runner.answer = () => new Promise((resolve) => of.clock.after(20, () => resolve(done)));
  const { source } = sourceOf(of);
  const receiver = of.subscription.list("initial", undefined);
  let isOver = false;
  for (let count = 0; count < 150; count++) {
    receiver.item(change("Added", `n${count}`, 100 + count, { spec }));
    await of.clock.advance(2);
    isOver ||= of.function.status().overShareSeconds !== undefined;
  }
  receiver.end(resourceVersion("300"));
  await of.clock.advance(60_000);
  expect(isOver).toBe(true);
  expect(source.left).toBe(0);
  expect([of.runner.deliveries.length, of.subscription.resumeFrom]).toEqual([150, "300"]);
});

it("a function that used nothing is not over its share when another one is", async () => {
  const of = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }, [judged]) })).listed();
  const greedy = await of.dispatcher.function({ ...manifest({}, [judged]), name: "greedy" }, { usesOldObject: false });
  const other = greedy.subscription("settings", { selection: "all", namespace: "" });
  other.list("initial", undefined).end(resourceVersion("1"));
  let seen = 0;
  for (let version = 11; version < 60; version += 9) {
    for (let count = 0; count < 8; count++)
      other.change(change("Added", `g${version}-${count}`, version + count, { spec }));
    of.subscription.change(change("Added", `small${version}`, version + 8));
    if (greedy.status().overShareSeconds !== undefined) seen++;
    expect(of.function.status().overShareSeconds).toBeUndefined();
    await of.clock.advance(20);
  }
  expect(seen).toBeGreaterThan(0);
});

it("each large body that a commit writes is charged once: as it is written, not as it arrives", async () => {
  const of = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 4 }) })).listed();
  const oneMs = (megabyte - 16 * 1024) * 5e-6;
  of.subscription.change(change("Added", "hot", 11, { spec }));
  await of.clock.advance(300);
  expect(rowsMs(of)).toBeCloseTo(oneMs, 1);
  // Only the newest of these is written, within five seconds.
  for (let version = 12; version < 32; version++) {
    of.subscription.change(change("Modified", "hot", version, { spec }));
    await of.clock.advance(100);
  }
  await of.clock.advance(6_000);
  expect(rowsMs(of)).toBeCloseTo(2 * oneMs, 1);
});

it.each([
  ["a change that is filtered", trigger({ events: ["Deleted"] }), 1],
  ["a dead letter, and its object's last body", trigger(), 2],
])("the body of %s is charged", async (_, one, bodies) => {
  const of = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 4 }, [one]) })).listed();
  of.runner.answer = () => ({ type: "permanent", durationMs: 1, error: { name: "Error", message: "no", stack: "" } });
  of.subscription.change(change("Added", "a", 11, { spec }));
  await of.clock.advance(6_000);
  expect(rowsMs(of)).toBeCloseTo(bodies * (megabyte - 16 * 1024) * 5e-6, 1);
});
