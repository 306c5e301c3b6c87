import { expect, test } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { change, type DispatchFixture, done, manifest, quiet, trigger } from "../fixture.ts";
import { byLabel, open, reconciler, withPods } from "./fixture.ts";

/** Limit of a function's keys without an object, if there is memory for them. */
const bound = 10_000;
/** Timeout of tests with this many keys on a busy machine, in milliseconds. */
const timeout = 120_000;
/** Memory for some 800 keys, in bytes. */
const memoryBudget = 1024 * 1024;
const day = 24 * 60 * 60 * 1_000;
const hoarder = reconciler({ concurrency: 1_000 }, byLabel);

/** A change of a Pod that wakes 100 keys which no earlier change has woken. */
const invents = (number: number, version = 100 + number) =>
  change("Added", `p${number}`, version, {
    spec: { of: Array.from({ length: 100 }, (_, each) => `k${number}-${each}`) },
  });

/** The keys that ran. */
const ran = ({ runner }: DispatchFixture) => new Set(runner.deliveries.map(({ object }) => object.name));

/** Continues the source and runs the keys, as far as possible. */
async function goOn(fixture: DispatchFixture): Promise<void> {
  for (let seen = -1; seen !== fixture.runner.deliveries.length; ) {
    seen = fixture.runner.deliveries.length;
    await quiet(fixture.runner);
    await fixture.clock.advance(1_000);
  }
}

/** A function whose keys without an object use up the memory, with some of 15 changes not accepted yet. */
async function atBound() {
  const fixture = await open({ manifest: hoarder, memoryBudget });
  fixture.runner.answer = () => ({ ...done, requeueAfterMs: day });
  for (let number = 1; number <= 15; number++) fixture.pods.change(invents(number));
  await goOn(fixture);
  expect(fixture.function.status().keys).toMatchObject({ full: true });
  return fixture;
}

test("a function at its bound of keys takes no more changes, and loses none", { timeout }, async () => {
  const fixture = await open({ manifest: hoarder });
  fixture.runner.answer = () => ({ ...done, requeueAfterMs: day });
  for (let number = 1; number <= 120; number++) fixture.pods.change(invents(number));
  await goOn(fixture);
  expect(fixture.function.status().keys).toEqual({ count: bound, withoutObject: bound, full: true });
  expect([ran(fixture).size, fixture.function.status().queued]).toEqual([bound, 20]);
  fixture.runner.answer = () => done;
  await fixture.clock.advance(day);
  await goOn(fixture);
  expect(ran(fixture).size).toBe(12_000);
  expect(fixture.function.status().keys).toEqual({ count: 0, withoutObject: 0, full: false });
  expect(fixture.disk.spill.size).toBe(0);
});

test("objects that come end the bound: their own changes are taken, and their keys have objects from then on", async () => {
  const fixture = await atBound();
  const keys = [...ran(fixture)].slice(0, 500);
  fixture.runner.answer = () => done;
  for (const [at, name] of keys.entries()) fixture.subscription.change(change("Added", name, 1_000 + at));
  for (let each = 0; each < 10; each++) await goOn(fixture);
  const seen = new Set(
    fixture.runner.deliveries.filter(({ type }) => type === "Modified").map(({ object }) => object.name),
  );
  expect(keys.filter((name) => !seen.has(name))).toEqual([]);
  expect(fixture.function.status().keys).toMatchObject({ full: false });
});

test("another function's keys run meanwhile", async () => {
  const fixture = await atBound();
  const other = { ...manifest({ mode: "Reconcile" }, [trigger()]), name: "other" };
  const loaded = await fixture.dispatcher.function(other, { usesOldObject: false });
  const subscription = loaded.subscription("settings", { selection: "all", namespace: "" });
  subscription.list("initial", undefined).end(resourceVersion("1"));
  await fixture.clock.advance(200);
  subscription.change(change("Added", "calm", 500));
  await quiet(fixture.runner);
  expect(fixture.runner.deliveries.at(-1)).toMatchObject({ function: "other", object: { name: "calm" } });
  expect(loaded.status().keys?.full).toBe(false);
});

test("keys of objects are as many as there are objects", { timeout }, async () => {
  const fixture = await open({ manifest: hoarder });
  fixture.runner.answer = () => ({ ...done, requeueAfterMs: 600_000 });
  const objects = bound + 2_000;
  for (let number = 0; number < objects; number++)
    fixture.subscription.change(change("Added", `o${number}`, 10 + number));
  await goOn(fixture);
  expect(fixture.function.status().keys).toEqual({ count: objects, withoutObject: 0, full: false });
  fixture.pods.change(invents(1, 90_000));
  await goOn(fixture);
  expect(ran(fixture).size).toBe(objects + 100);
});

test("a key whose object is gone counts among those without one, and one whose object comes no more", async () => {
  const fixture = await open({ manifest: hoarder });
  fixture.runner.answer = () => ({ ...done, requeueAfterMs: day });
  fixture.subscription.change(change("Added", "a", 10));
  fixture.pods.change(change("Added", "p", 11, { spec: { of: "b" } }));
  await goOn(fixture);
  expect(fixture.function.status().keys).toMatchObject({ count: 2, withoutObject: 1 });
  fixture.subscription.change(change("Deleted", "a", 12));
  fixture.subscription.change(change("Added", "b", 13));
  await goOn(fixture);
  expect(fixture.function.status().keys).toMatchObject({ count: 2, withoutObject: 1 });
  fixture.subscription.change(change("Added", "a", 14));
  await goOn(fixture);
  expect(fixture.function.status().keys).toMatchObject({ count: 2, withoutObject: 0 });
});

test("a restart at the bound loses no change, runs no key before its time, and takes none until keys are gone", async () => {
  const first = await atBound();
  const held = ran(first).size;
  const second = await withPods(await first.restart({ manifest: hoarder, memoryBudget }), false);
  await goOn(second);
  const before = second.runner.deliveries.length;
  expect(second.function.status().keys).toMatchObject({ count: held, withoutObject: held });
  // Changes that the source sends again.
  const from = Number(second.pods.resumeFrom);
  expect(from).toBeLessThan(115);
  for (let number = 1; number <= 15; number++) if (100 + number > from) second.pods.change(invents(number));
  await goOn(second);
  expect(second.runner.deliveries.length).toBe(before);
  expect(second.function.status().keys?.full).toBe(true);
  second.runner.answer = () => done;
  await second.clock.advance(day);
  await goOn(second);
  expect(ran(second).size).toBe(1_500);
});

test("new code at the bound is asked anew, and changes are taken where it lets keys go", async () => {
  const fixture = await atBound();
  const before = fixture.runner.deliveries.length;
  fixture.runner.answer = () => done;
  await fixture.function.replace(hoarder, false, async () => {});
  await goOn(fixture);
  expect(ran(fixture).size).toBe(1_500);
  expect(fixture.runner.deliveries.length).toBe(before + 1_500);
  expect(fixture.function.status().keys).toEqual({ count: 0, withoutObject: 0, full: false });
});

test("new code below the bound runs no key before its time", async () => {
  const fixture = await open({ manifest: hoarder });
  fixture.runner.answer = () => ({ ...done, requeueAfterMs: day });
  fixture.pods.change(invents(1));
  await goOn(fixture);
  await fixture.function.replace(hoarder, false, async () => {});
  await goOn(fixture);
  expect(fixture.runner.deliveries.length).toBe(100);
});

test("of a small budget who has most keys beyond an equal share pays, and another takes its changes", async () => {
  const fixture = await open({ manifest: hoarder, memoryBudget });
  fixture.runner.answer = () => ({ ...done, requeueAfterMs: day });
  const other = { ...hoarder, name: "other" };
  const loaded = await fixture.dispatcher.function(other, { usesOldObject: false });
  const [settings, pods] = ["settings", "pods"].map((name) => {
    const subscription = loaded.subscription(name, { selection: "all", namespace: "" });
    subscription.list("initial", undefined).end(resourceVersion("1"));
    return subscription;
  });
  expect(settings).toBeDefined();
  await fixture.clock.advance(200);
  for (let number = 1; number <= 30; number++) fixture.pods.change(invents(number));
  await goOn(fixture);
  const hoarded = fixture.function.status().keys;
  expect(hoarded?.full).toBe(true);
  expect(hoarded?.withoutObject).toBeLessThan(1_100);
  pods?.change(invents(1));
  await goOn(fixture);
  expect(loaded.status().keys).toMatchObject({ withoutObject: 100, full: false });
});
