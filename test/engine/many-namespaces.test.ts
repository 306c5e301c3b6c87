import { expect, onTestFinished, test, vi } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { ByNamespace } from "../../runtime/engine/state/by-namespace.ts";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { WorkingClock } from "../busy-clock.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, manifest, quiet, trigger } from "./fixture.ts";

const count = 100;
const each = 20;
const names = Array.from({ length: count }, (_, index) => `team-${index}`);
const byLabel = manifest({}, [trigger({ namespaces: { type: "labels", labelSelector: "team" } })]);

/** The disk of a process that knew `each` objects in each of the namespaces. */
async function left(): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  const store = new MemoryStore(disk);
  const { id: view } = await store.openView("copy", "settings", "/ConfigMap");
  const known = Array.from({ length: count * each }, (_, n) => {
    const rest = { hash: "", deleted: false, matched: true, body: undefined };
    const state = { uid: `uid-${n}`, resourceVersion: resourceVersion(String(1_000 + n)), ...rest };
    return { view, key: `${names[n % count]}/object-${n}`, state };
  });
  const lowWaterMark = resourceVersion("9000");
  const cursors = names.map((namespace) => ({
    view,
    namespace,
    selection: "all",
    lowWaterMark,
    epoch: 0,
    initial: false,
  }));
  await store.commit({ ...emptyBatch, known, cursors });
  return disk;
}

/** Returns a counter of the objects examined since its last call. */
function looks(): () => number {
  let looked = 0;
  const original = ByNamespace.prototype.in;
  const spy = vi.spyOn(ByNamespace.prototype, "in").mockImplementation(function* (
    this: ByNamespace<unknown>,
    namespace,
  ) {
    for (const entry of original.call(this, namespace)) {
      looked++;
      yield entry;
    }
  });
  onTestFinished(() => spy.mockRestore());
  return () => {
    const since = looked;
    looked = 0;
    return since;
  };
}

test("a start with many namespaces looks at each object a few times, and a namespace that leaves costs its own objects", async () => {
  const it = await DispatchFixture.open({ disk: await left(), manifest: byLabel, namespace: names[0] });
  const looked = looks();
  for (const namespace of names) it.function.subscription("settings", { selection: "all", namespace });
  it.function.retain("settings", names);
  expect(looked()).toBeLessThanOrEqual(3 * count * each);
  for (let gone = 1; gone <= 10; gone++) it.function.retain("settings", names.slice(gone));
  expect(looked()).toBeLessThanOrEqual(3 * 10 * each);
  await quiet(it.runner);
  expect(it.runner.deliveries.map(({ type, flags }) => `${type} ${flags.reason}`)).toEqual(
    Array.from({ length: 10 * each }, () => "Deleted unselected"),
  );
});

/** Selects and deselects one namespace with 1,000 objects; `waits` counts the events that then wait. */
async function leftOne() {
  const held = manifest({}, byLabel.triggers);
  const it = await DispatchFixture.open({ clock: new WorkingClock(), manifest: held, namespace: "team-a" });
  it.function.retain("settings", ["team-a"]);
  const list = it.subscription.list("initial", undefined);
  for (let at = 0; at < 1_000; at++) list.item(change("Added", `object-${at}`, 10 + at));
  list.end(resourceVersion("2000"));
  for (let turn = 0; turn < 400; turn++) {
    await it.clock.advance(100);
    if (it.runner.deliveries.length === 1_000) break;
  }
  expect(it.runner.deliveries.length).toBe(1_000);
  it.runner.deliveries.length = 0;
  it.dispatcher.hold("copy", "command");
  it.function.retain("settings", []);
  const waits = () => {
    const { queued, spilled } = it.function.status();
    return queued + spilled;
  };
  return { it, waits };
}

test("the objects of a namespace that leaves are told of in turns of the event loop", async () => {
  const { it, waits } = await leftOne();
  expect(waits()).toBeLessThan(50);
  let before = waits();
  while (waits() < 1_000) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(waits() - before).toBeLessThan(50);
    before = waits();
  }
  it.dispatcher.release("copy", "command");
  for (let turn = 0; turn < 400 && it.runner.deliveries.length < 1_000; turn++) await it.clock.advance(100);
  expect(it.runner.deliveries.every(({ type, flags }) => type === "Deleted" && flags.reason === "unselected")).toBe(
    true,
  );
  expect(it.runner.deliveries.length).toBe(1_000);
});

test("a namespace that comes back while it is told of finds all of its objects told", async () => {
  const { it, waits } = await leftOne();
  expect(waits()).toBeLessThan(50);
  it.function.retain("settings", ["team-a"]);
  it.function.subscription("settings", { selection: "all", namespace: "team-a" });
  expect(waits()).toBe(1_000);
});

test("a list of the namespaces is not doubted for deletions that are still being delivered", async () => {
  const { it, waits } = await leftOne();
  expect(waits()).toBeLessThan(1_000);
  expect(it.function.believes("settings", [])).toBe(true);
});

/** Selects a namespace with one object, and deselects it once the object is delivered. */
async function comesAndGoes(it: DispatchFixture, namespace: string, rv: number): Promise<void> {
  it.function.retain("settings", ["team-a", namespace]);
  const source = it.function.subscription("settings", { selection: "all", namespace });
  const list = source.list("initial", undefined);
  list.item(change("Added", "object", rv, { namespace, uid: `uid-${namespace}` }));
  list.end(resourceVersion(String(rv)));
  await quiet(it.runner);
  it.function.retain("settings", ["team-a"]);
  await quiet(it.runner);
}

test("namespaces that came and went leave no record, and one that comes back has no id that was told before", async () => {
  const it = await DispatchFixture.open({ manifest: byLabel, namespace: "team-a" });
  it.function.retain("settings", ["team-a"]);
  await it.listed();
  for (let at = 0; at < 50; at++) await comesAndGoes(it, `preview-${at}`, 100 + at);
  await comesAndGoes(it, "preview-0", 100);
  it.function.retain("settings", ["team-a"]);
  await it.clock.advance(1_000);
  const [view] = await it.store.views("copy");
  expect(view?.cursors.map(({ namespace }) => namespace).sort()).toEqual(["", "team-a"]);
  const ids = it.runner.deliveries.map(({ id }) => id);
  expect([ids.length, new Set(ids).size]).toEqual([102, 102]);
});

test("a list of the namespaces is doubted for what leaves, and who stays is hardly looked at", async () => {
  const it = await DispatchFixture.open({ disk: await left(), manifest: byLabel, namespace: names[0] });
  const looked = looks();
  expect(it.function.believes("settings", names)).toBe(true);
  expect(looked()).toBe(0);
  expect(it.function.believes("settings", names.slice(5))).toBe(true);
  expect(looked()).toBeLessThanOrEqual(2 * 6 * each);
  expect(it.function.believes("settings", names.slice(count / 2 + 1))).toBe(false);
  expect(it.function.believes("settings", names.slice(count / 2))).toBe(true);
});

test("a list of one namespace looks at the objects of that namespace alone", async () => {
  const it = await DispatchFixture.open({ disk: await left(), manifest: byLabel, namespace: names[0] });
  it.function.retain("settings", names);
  const looked = looks();
  await it.list(9_500, []);
  expect(looked()).toBeLessThanOrEqual(3 * each);
});
