import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { Commits } from "../../runtime/engine/commit/commits.ts";
import type { Batch } from "../../runtime/journal/batch.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import type { Trigger } from "../../runtime/manifest/function.ts";
import { largeBytes } from "../../runtime/v8/own-copy.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { settle, VirtualClock } from "../virtual-clock.ts";
import { change, DispatchFixture, type DispatchOptions, manifest, quiet, trigger } from "./fixture.ts";

/** Records the written bodies, as their objects' resourceVersions. */
class NotingStore extends MemoryStore {
  readonly written: string[] = [];
  commits = 0;

  override commit(batch: Batch): Promise<readonly string[]> {
    this.commits++;
    const bodies = [...batch.known.map(({ state }) => state?.body), ...batch.bodies.map(({ body }) => body)];
    for (const body of bodies) {
      if (body instanceof Uint8Array) this.written.push(JSON.parse(body.toString()).metadata.resourceVersion);
    }
    return super.commit(batch);
  }
}

const when = (expression: string, over: Partial<Trigger> = {}): DispatchOptions => ({
  manifest: manifest({}, [trigger({ matchConditions: [{ name: "c", expression }], ...over })]),
});

/** An object that was added and recorded, and then changed so that its recorded body is out of date. */
async function changed(options: DispatchOptions = {}, spec: unknown = { n: 2 }): Promise<DispatchFixture> {
  const it = await (await DispatchFixture.open(options)).listed();
  it.subscription.change(change("Added", "a", 11, { spec: { n: 1 } }));
  await it.clock.advance(1_000);
  it.subscription.change(change("Modified", "a", 12, { spec }));
  it.subscription.bookmark(resourceVersion("12"));
  await it.clock.advance(1_000);
  it.runner.deliveries.length = 0;
  return it;
}

const lastTold = ({ runner }: DispatchFixture) => {
  const { body, oldBody, flags } = runner.deliveries.at(-1) ?? {};
  const specOf = (json: Buffer | undefined) => json && JSON.parse(json.toString()).spec;
  return { spec: specOf(body), old: specOf(oldBody), unknown: flags?.finalStateUnknown };
};

describe("the last body of an object that changes often", () => {
  it("is written once in five seconds, and then the newest", async () => {
    const store = new NotingStore();
    const it = await (await DispatchFixture.open({ store })).listed();
    it.subscription.change(change("Added", "a", 11));
    for (let rv = 12; rv <= 31; rv++) {
      it.subscription.change(change("Modified", "a", rv));
      await it.clock.advance(1_000);
    }
    await it.clock.advance(5_000);
    expect(store.written[0]).toBe("11");
    expect(store.written.at(-1)).toBe("31");
    expect(store.written.length).toBeLessThanOrEqual(1 + 5);
  });

  it("is written with the commits of a steady stream, and takes none of its own", async () => {
    const store = new NotingStore();
    const it = await (await DispatchFixture.open({ store })).listed();
    let rv = 10;
    const stream = async (seconds: number) => {
      for (let event = 0; event < 10 * seconds; event++) {
        it.subscription.change(change(rv < 110 ? "Added" : "Modified", `a${rv % 100}`, ++rv));
        await it.clock.advance(100);
      }
    };
    await stream(20);
    const { commits } = store;
    const bodies = store.written.length;
    await stream(10);
    expect(store.written.length - bodies).toBeGreaterThan(80);
    expect(store.commits - commits).toBeLessThanOrEqual(110);
  });

  it("is what its Deleted shows while the process lives", async () => {
    const it = await changed();
    await it.list(30, []);
    await quiet(it.runner);
    expect(lastTold(it)).toMatchObject({ spec: { n: 2 }, unknown: true });
  });

  it("may be of an earlier state in the Deleted that follows a kill, which says that it does not know", async () => {
    const it = await (await changed()).restart();
    await it.list(30, []);
    await quiet(it.runner);
    expect(lastTold(it)).toMatchObject({ spec: { n: 1 }, unknown: true });
  });

  it("is written with an end in good order", async () => {
    const first = await changed();
    expect(await first.drain()).toBe(true);
    const it = await first.restart({ usesOldObject: true });
    it.runner.deliveries.length = 0;
    it.subscription.change(change("Modified", "a", 13, { spec: { n: 3 } }));
    await quiet(it.runner);
    expect(lastTold(it)).toMatchObject({ spec: { n: 3 }, old: { n: 2 } });
  });

  it("is written with an end in good order, however many wait", async () => {
    const store = new NotingStore();
    const it = await (await DispatchFixture.open({ store })).listed();
    const spec = "x".repeat(1 << 19);
    for (const n of [1, 2, 3]) it.subscription.change(change("Added", `n${n}`, n + 10, { spec }));
    await it.clock.advance(1_000);
    for (const n of [1, 2, 3]) it.subscription.change(change("Modified", `n${n}`, n + 20, { spec }));
    await it.clock.advance(1_000);
    expect(await it.drain()).toBe(true);
    expect(store.written.slice(-3)).toEqual(["21", "22", "23"]);
  });

  it("is on record with each change where a handler or a condition compares with it", async () => {
    for (const options of [{ usesOldObject: true }, when("object.spec != oldObject.spec")]) {
      const it = await (await changed(options)).restart({ usesOldObject: true });
      it.subscription.change(change("Modified", "a", 13, { spec: { n: 3 } }));
      await quiet(it.runner);
      expect(lastTold(it)).toMatchObject({ spec: { n: 3 }, old: { n: 2 } });
    }
  });

  it("waits in memory no further than 32 MiB: what goes beyond is written at once", async () => {
    const store = new NotingStore();
    const it = await (await DispatchFixture.open({ store })).listed();
    const spec = "x".repeat(1 << 20);
    for (let n = 1; n <= 36; n++) it.subscription.change(change("Added", `n${n}`, n + 10, { spec }));
    await it.clock.advance(1_000);
    for (let n = 1; n <= 36; n++) it.subscription.change(change("Modified", `n${n}`, n + 60, { spec }));
    await it.clock.advance(1_000);
    const late = store.written.filter((version) => Number(version) > 60);
    expect(late.length).toBeGreaterThanOrEqual(4);
    expect(late.length).toBeLessThan(10);
    await it.clock.advance(5_000);
    expect(new Set(store.written.filter((version) => Number(version) > 60)).size).toBe(36);
  });
});

describe("a body on record that is older than its object, after a kill", () => {
  it("is not what new code is told the object was before", async () => {
    const it = await (await changed()).restart({ usesOldObject: true });
    it.subscription.change(change("Modified", "a", 13, { spec: { n: 3 } }));
    it.subscription.change(change("Modified", "a", 14, { spec: { n: 4 } }));
    await quiet(it.runner);
    expect(it.runner.deliveries.map(({ oldBody }) => oldBody && JSON.parse(oldBody.toString()).spec)).toEqual([
      undefined,
      { n: 3 },
    ]);
  });

  it("keeps nothing from being told that a new condition would compare with it", async () => {
    const it = await (await changed()).restart(when("object.spec.n != oldObject.spec.n"));
    it.subscription.change(change("Modified", "a", 13, { spec: { n: 1 } }));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@13"]);
  });

  it("keeps nothing from being told by changed fields that are edited", async () => {
    const fields = (name: string): DispatchOptions => ({
      manifest: manifest({}, [trigger({ changedFields: [["spec", name]] })]),
    });
    const it = await (await changed(fields("m"), { n: 2, m: 1 })).restart(fields("n"));
    it.subscription.change(change("Modified", "a", 13, { spec: { n: 1 } }));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@13"]);
  });

  it("does not decide whether a Deleted matches: the conditions' last answer does", async () => {
    for (const [expression, told] of [
      ["object.spec.n == 1", []],
      ["object.spec.n == 2", ["Deleted a@12"]],
    ] as const) {
      const options = when(expression);
      const it = await (await changed(options)).restart(options);
      await it.list(30, []);
      await quiet(it.runner);
      expect(it.runner.told).toEqual(told);
    }
  });
});

describe("large bodies of new objects", () => {
  const spec = "x".repeat(1 << 20);
  const added = (it: DispatchFixture, count: number) => {
    for (let n = 1; n <= count; n++) it.subscription.change(change("Added", `n${n}`, n + 20, { spec }));
  };

  it("are written one in each commit, so that no other function waits long for one", async () => {
    const store = new NotingStore();
    const it = await (await DispatchFixture.open({ store })).listed();
    const most: number[] = [];
    const { commit } = store;
    store.commit = async (batch) => {
      const before = store.written.length;
      const letters = await commit.call(store, batch);
      most.push(store.written.length - before);
      return letters;
    };
    added(it, 20);
    await it.clock.advance(1_000);
    expect(Math.max(...most)).toBe(1);
    expect(new Set(store.written).size).toBe(20);
  });

  it("join the commit of their rows if none waits, so that a kill loses neither", async () => {
    const store = new NotingStore();
    const it = await (await DispatchFixture.open({ store })).listed();
    const { commit } = store;
    const rows: string[] = [];
    store.commit = async (batch) => {
      const states = batch.known.filter(({ state }) => state && !state.deleted);
      for (const { key, state } of states) rows.push(`${key} ${state?.body instanceof Uint8Array}`);
      return await commit.call(store, batch);
    };
    added(it, 1);
    await it.clock.advance(1_000);
    expect(rows).toEqual(["team-a/n1 true"]);
  });

  it("do not wait behind bodies that may", async () => {
    const store = new NotingStore();
    const it = await (await DispatchFixture.open({ store })).listed();
    it.subscription.change(change("Added", "small", 11));
    await it.clock.advance(1_000);
    it.subscription.change(change("Modified", "small", 12));
    added(it, 3);
    await it.clock.advance(1_000);
    expect(new Set(store.written)).toEqual(new Set(["11", "21", "22", "23"]));
  });
});

type Step =
  | { readonly type: "change"; readonly key: string; readonly compares: boolean; readonly isLarge: boolean }
  | { readonly type: "delete"; readonly key: string }
  | { readonly type: "wait"; readonly ms: number }
  | { readonly type: "sync" }
  | { readonly type: "fail" };

/** The digits of a version, with spaces up to the size from which on a body is large. */
const bodyText = (version: number, isLarge: boolean): string => String(version).padEnd(isLarge ? largeBytes : 0);
const key = fc.constantFrom("a", "b", "c");
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        type: fc.constant("change" as const),
        key,
        compares: fc.boolean(),
        isLarge: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("delete" as const), key }) },
    { weight: 4, arbitrary: fc.record({ type: fc.constant("wait" as const), ms: fc.nat(3_000) }) },
    { weight: 1, arbitrary: fc.constant({ type: "sync" as const }) },
    { weight: 1, arbitrary: fc.constant({ type: "fail" as const }) },
  ),
  { maxLength: 40 },
);

/** A store whose next commit fails if `fails` is set. */
class FailingStore extends MemoryStore {
  fails = false;

  override async commit(batch: Batch): Promise<readonly string[]> {
    const { fails } = this;
    this.fails = false;
    if (fails) throw new Error("disk full");
    return super.commit(batch);
  }
}

/** Changes objects as a view does, and compares what is read and what is recorded with what was written. */
async function bodiesAreTrue(plan: readonly Step[]): Promise<void> {
  const clock = new VirtualClock();
  const store = new FailingStore(new MemoryDisk());
  const { id: view } = await store.openView("copy", "settings", "/ConfigMap");
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const commits = new Commits({
    store,
    clock,
    observer: {},
    log,
    firstJournalRow: 1,
    permitted: () => true,
    onLost: () => {},
  });
  const newest = new Map<string, string>();
  const handedOut: { readonly bytes: Buffer; readonly body: string | undefined }[] = [];
  let version = 0;
  const large = new Set<string>();
  for (const step of plan) {
    if (step.type === "change") {
      if (step.isLarge) large.add(String(version + 1));
      const body = bodyText(++version, step.isLarge);
      const identity = {
        uid: "u",
        resourceVersion: resourceVersion(String(version)),
        hash: "",
        deleted: false,
        matched: true,
      };
      const state = { ...identity, body: Buffer.from(body) };
      if (step.compares || !newest.has(step.key)) commits.putKnown(view, step.key, state);
      else commits.putKnownBodyLater(view, step.key, state);
      newest.set(step.key, body);
    } else if (step.type === "delete") {
      commits.putKnown(view, step.key, undefined);
      newest.delete(step.key);
    } else if (step.type === "wait") await clock.advance(step.ms);
    else if (step.type === "fail") store.fails = true;
    else {
      const synced = commits.sync();
      await clock.advance(2_000);
      await synced;
      for (const [name, body] of newest) {
        const onRecord = await store.body(view, name);
        expect([onRecord?.bytes.toString(), onRecord?.isOlder]).toEqual([body, false]);
      }
    }
    for (const name of ["a", "b", "c"]) {
      const read = await commits.body(view, name);
      if (read) handedOut.push({ bytes: read.bytes, body: newest.get(name) });
      expect(read && { body: read.bytes.toString(), isOlder: read.isOlder }).toEqual(
        newest.has(name) ? { body: newest.get(name), isOlder: false } : undefined,
      );
    }
    // As after a kill.
    await store.known(view, (name, identity) => {
      const { body, bodyIsOlder } = store.disk.views.get(view)?.known.get(name) ?? {};
      // A large body may follow its row.
      expect(body !== undefined || large.has(identity.resourceVersion)).toBe(true);
      if (!bodyIsOlder && body) expect(body.toString().trim()).toBe(identity.resourceVersion);
    });
  }
  for (const { bytes, body } of handedOut) expect(bytes.toString()).toBe(body);
  commits.halt();
  await settle();
}

it("a body that is read is the newest, and none on record is taken for newer than it is, whatever happens in between", async () => {
  await fc.assert(fc.asyncProperty(steps, bodiesAreTrue), { numRuns: 300 });
});

describe("a trigger that keeps metadata alone", () => {
  const metadata = { namespace: "team-a", name: "a", uid: "uid-a", resourceVersion: "11" };
  const kept = { apiVersion: "v1", kind: "ConfigMap", metadata };

  it.each([
    ["in the usual order", JSON.stringify({ ...kept, spec: { metadata: 1 } })],
    ["in another", JSON.stringify({ status: [1], metadata, kind: "ConfigMap", apiVersion: "v1" })],
    [
      "with a name that is written otherwise",
      JSON.stringify({ ...kept, spec: 1 }).replace('"metadata"', '"meta\\u0064ata"'),
    ],
  ])("has nothing else of an object on record: %s", async (_, body) => {
    const options = { manifest: manifest({}, [trigger({ lastBody: "Metadata" })]) };
    const it = await (await DispatchFixture.open(options)).listed();
    it.subscription.change({ ...change("Added", "a", 11), body: Buffer.from(body) });
    await it.clock.advance(1_000);
    const [view] = await it.store.views();
    const onRecord = await it.store.body(view?.id ?? 0, "team-a/a");
    expect(JSON.parse(onRecord?.bytes.toString() ?? "")).toEqual(kept);
  });
});
