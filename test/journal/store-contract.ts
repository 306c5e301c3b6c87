import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { resourceVersion, resourceVersionIn } from "../../runtime/base/resource-version.ts";
import {
  type Batch,
  type Cursor,
  emptyBatch,
  type KnownIdentity,
  type NewDeadLetter,
  type PendingKey,
  runId,
  type SpilledEvent,
  type SpilledKey,
} from "../../runtime/journal/batch.ts";
import type { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { DeadLetters } from "../../runtime/journal/dead-letters.ts";
import type { PreviousEnd } from "../../runtime/journal/journal.ts";

/** A place where a store can be opened, closed and opened again. */
export interface StorePlace {
  open(): Checkpoint | Promise<Checkpoint>;
  /** Abandons the store without closing it, like a killed process. */
  kill(store: Checkpoint): void | Promise<void>;
  /** The previous end that the next process reports after a kill. Default: `killed`. */
  readonly unclean?: PreviousEnd;
  /** Whether bodies of known objects outlive a process. Default true. */
  readonly keepsBodies?: boolean;
}

export const spilledKey = (view: number, sequence: number, pending: PendingKey): SpilledKey => ({
  kind: "key",
  view,
  function: "copy",
  trigger: "settings",
  namespace: "team-a",
  name: "web",
  id: runId(sequence),
  body: Buffer.alloc(0),
  oldBody: undefined,
  receivedAt: 1_700_000_000_000,
  sequence,
  redelivered: false,
  pending,
});

const cursor = (view: number, lowWaterMark: string | undefined): Cursor => ({
  view,
  namespace: "team-a",
  selection: "s1",
  lowWaterMark: resourceVersionIn(lowWaterMark),
  epoch: 2,
  initial: true,
});

export const spilledEvent = (view: number, sequence: number, over: Partial<SpilledEvent> = {}): SpilledEvent => ({
  kind: "event",
  view,
  function: "copy",
  trigger: "settings",
  namespace: "team-a",
  name: "web",
  uid: "u1",
  resourceVersion: resourceVersion(String(100 + sequence)),
  type: "Modified",
  id: `u1/${100 + sequence}/Modified`,
  flags: { synthetic: true, gap: { from: null, to: "90" } },
  form: "F,v1",
  deletedBy: resourceVersion("77"),
  body: Buffer.from(`{"n":${sequence}}`),
  oldBody: undefined,
  receivedAt: 1_700_000_000_000,
  sequence,
  replayed: false,
  redelivered: false,
  ...over,
});

export const letter = (view: number): NewDeadLetter => {
  const {
    sequence: _,
    replayed: __,
    redelivered: ___,
    ...event
  } = spilledEvent(view, 7, { oldBody: Buffer.from("{}") });
  return {
    ...event,
    apiVersion: "v1",
    kind: "ConfigMap",
    attempts: 5,
    error: { name: "Error", message: "no", stack: "Error: no\n  at handler.ts:3:1", code: "WF_X" },
    failedAt: 1_700_000_000_500,
  };
};

/** A dead letter with an incompressible body. */
const large = (view: number, bytes = 100_000): NewDeadLetter => ({
  ...letter(view),
  body: randomBytes(bytes),
  oldBody: undefined,
});

const state = (version: string, body?: string) => ({
  uid: "u1",
  resourceVersion: resourceVersion(version),
  hash: "h",
  deleted: false,
  matched: true,
  body: body === undefined ? undefined : Buffer.from(body),
});

async function knownOf(store: Checkpoint, view: number): Promise<Record<string, KnownIdentity>> {
  const found: Record<string, KnownIdentity> = {};
  await store.known(view, (key, identity) => {
    found[key] = identity;
  });
  return found;
}

const commit = (store: Checkpoint, batch: Partial<Batch>) => store.commit({ ...emptyBatch, ...batch });

/** The laws of a checkpoint store; every implementation passes them. */
export function storeContract(place: () => Promise<StorePlace>): void {
  it("a function that was paused is so after a kill, until that is taken back", async () => {
    const { open, kill } = await place();
    const first = await open();
    await first.setPaused("copy", 12);
    await first.setPaused("greet", 13);
    await first.setPaused("copy", undefined);
    await first.setPaused("greet", 14);
    await first.sync();
    await kill(first);
    const second = await open();
    expect([...(await second.paused())]).toEqual([["greet", 14]]);
    await second.setPaused("greet", undefined);
    await second.sync();
    await kill(second);
    const third = await open();
    expect((await third.paused()).size).toBe(0);
    await third.close(true);
  });

  it("the row of a key that is to be reconciled, and the time before which an event is not to come, are there after a kill", async () => {
    const { open, kill } = await place();
    const first = await open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    const pending = {
      causes: [{ type: "Added", trigger: "settings", namespace: "team-a", name: "web" }, { type: "Requeue" }],
      begun: 3,
      forgiven: 1,
    } as const;
    const row = (notBefore: number) => ({ ...spilledKey(id, 4, pending), notBefore });
    const later = spilledEvent(id, 5, { notBefore: 1_700_000_060_000 });
    await commit(first, { spill: [row(1), later] });
    // If it is written again, it replaces the row.
    await commit(first, { spill: [row(1_700_000_000_000)] });
    await first.sync();
    await kill(first);
    const second = await open();
    const [key, event, ...more] = [...(await second.spillHeaders("copy"))];
    expect(more).toEqual([]);
    expect(key).toMatchObject({ kind: "key", sequence: 4, pending, notBefore: 1_700_000_000_000, size: 0 });
    expect(event).toMatchObject({ kind: "event", sequence: 5, notBefore: 1_700_000_060_000 });
    expect((await second.spilled("copy", 3, 1))[0]).toMatchObject({ kind: "key", sequence: 4, pending });
    await commit(second, { unspill: [{ function: "copy", sequence: 4 }] });
    expect([...(await second.spillHeaders("copy"))].map(({ sequence }) => sequence)).toEqual([5]);
    await second.close(true);
  });

  it("what waits of a function can be noted as doubted, all of it and nothing else, and is so after a kill", async () => {
    const { open, kill } = await place();
    const first = await open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    const other = await first.openView("other", "settings", "/ConfigMap");
    const others = spilledEvent(other.id, 6, { function: "other" });
    const oldBody = Buffer.from("{}");
    await commit(first, { spill: [spilledEvent(id, 4), spilledEvent(id, 5, { oldBody, redelivered: true }), others] });
    await first.markSpillPossiblyDelivered("copy");
    await first.markSpillPossiblyDelivered("nobody");
    await commit(first, { spill: [spilledEvent(id, 7)] });
    await first.sync();
    await kill(first);
    const second = await open();
    const doubted = [spilledEvent(id, 4, { redelivered: true }), spilledEvent(id, 5, { oldBody, redelivered: true })];
    expect(await second.spilled("copy", 0, 9)).toEqual([...doubted, spilledEvent(id, 7)]);
    expect(await second.spilled("other", 0, 9)).toEqual([others]);
    expect([...(await second.spillHeaders("copy"))].map(({ redelivered }) => redelivered)).toEqual([true, true, false]);
    await second.close(true);
  });

  it("what was committed is there after a kill, and a kill is told from a clean end", async () => {
    const { open, kill, unclean = "killed", keepsBodies = true } = await place();
    const first = await open();
    expect(first.previousEnd).toBe("new");
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await commit(first, {
      known: [{ view: id, key: "team-a/web", state: state("5", "{}") }],
      cursors: [cursor(id, "9")],
      journal: [
        {
          id: 3,
          started: [
            {
              view: id,
              key: "team-a/web",
              id: "u1/6/Modified",
              resourceVersion: resourceVersion("6"),
              type: "Modified",
              attempt: 2,
            },
          ],
        },
      ],
      spill: [spilledEvent(id, 4)],
      deadLetters: [letter(id)],
    });
    await first.setCluster("c1");
    await first.sync();
    await kill(first);

    const second = await open();
    expect(second.previousEnd).toBe(unclean);
    expect(await second.cluster()).toBe("c1");
    const record = { identity: "settings", manifest: undefined };
    expect(await second.views("copy")).toEqual([
      { id, function: "copy", trigger: "settings", resource: "/ConfigMap", ...record, cursors: [cursor(id, "9")] },
    ]);
    const { body: _, ...identity } = state("5");
    expect(await knownOf(second, id)).toEqual({ "team-a/web": identity });
    expect((await second.body(id, "team-a/web"))?.bytes.toString()).toBe(keepsBodies ? "{}" : undefined);
    expect((await second.begun())[0]?.started[0]).toMatchObject({ key: "team-a/web", attempt: 2, type: "Modified" });
    expect(await second.spilled("copy", 0, 10)).toEqual([spilledEvent(id, 4)]);
    expect(await second.deadLetter("1")).toEqual({ ...letter(id), letter: "1", bodyDropped: false });
    await second.close(true);

    expect((await open()).previousEnd).toBe("clean");
  });

  it("whom an object counts for is there after a kill, with no body of it, until a later state says otherwise", async () => {
    const { open, kill } = await place();
    const first = await open();
    const { id } = await first.openView("shops", "pods", "/Pod");
    const put = (store: Checkpoint, key: string, version: string, keys?: readonly string[]) =>
      commit(store, { known: [{ view: id, key, state: { ...state(version), ...(keys && { keys }) } }] });
    await put(first, "a/x", "5", ["a/shop", "b/shop"]);
    await put(first, "a/none", "6", []);
    await put(first, "a/moved", "7", ["a/shop"]);
    await put(first, "a/moved", "8", ["b/shop"]);
    await put(first, "a/unnoted", "9", ["a/shop"]);
    await put(first, "a/unnoted", "10");
    await first.sync();
    await kill(first);
    const second = await open();
    const known = await knownOf(second, id);
    expect(Object.fromEntries(Object.entries(known).map(([key, { keys }]) => [key, keys]))).toEqual({
      "a/x": ["a/shop", "b/shop"],
      "a/none": [],
      "a/moved": ["b/shop"],
      "a/unnoted": undefined,
    });
    await second.close(true);
  });

  it("what is on record of views is there after a kill, and two may have swapped names", async () => {
    const { open, kill } = await place();
    const first = await open();
    const a = await first.openView("copy", "a", "/ConfigMap");
    const b = await first.openView("copy", "b", "/ConfigMap");
    await first.recordViews([
      { id: a.id, trigger: "b", identity: "a", manifest: '{"mode":"All"}' },
      { id: b.id, trigger: "a", identity: "b.2", manifest: undefined },
    ]);
    await first.sync();
    await kill(first);
    const second = await open();
    const views = (await second.views("copy")).map(({ cursors: _, ...view }) => view);
    const of = { function: "copy", resource: "/ConfigMap" };
    expect(views.toSorted((one, other) => one.id - other.id)).toEqual([
      { ...of, id: a.id, trigger: "b", identity: "a", manifest: '{"mode":"All"}' },
      { ...of, id: b.id, trigger: "a", identity: "b.2", manifest: undefined },
    ]);
    expect((await second.openView("copy", "a", "/ConfigMap")).id).toBe(b.id);
    await second.close(true);
  });

  it("each object has the form that its own row was written in, also after a kill, and none where it had none", async () => {
    const { open, kill } = await place();
    const first = await open();
    const ids = [];
    for (const name of ["copy", "other"]) ids.push((await first.openView(name, "settings", "/ConfigMap")).id);
    const [id = 0, other = 0] = ids;
    const put = (view: number, key: string, version: string, form?: string, body?: Buffer | "older") =>
      commit(first, { known: [{ view, key, state: { ...state(version), body, ...(form && { form }) } }] });
    await put(id, "a/usual", "5", "F,v1,-,-", Buffer.from("{}"));
    await put(id, "a/usual2", "5", "F,v1,-,-");
    await put(id, "a/edited", "6", "F,v1,-,-", Buffer.from("{}"));
    await put(id, "a/edited", "7", "M,v2,-,-", "older");
    await put(id, "a/formless", "8");
    await put(id, "a/lost", "9", "F,v1,-,-");
    await put(id, "a/lost", "10");
    await put(other, "a/usual", "5", "N,v1,-,-");
    await first.sync();
    await kill(first);
    const second = await open();
    const formsOf = async (view: number) =>
      Object.entries(await knownOf(second, view)).map(([key, { form }]) => [key, form]);
    expect(Object.fromEntries(await formsOf(id))).toEqual({
      "a/usual": "F,v1,-,-",
      "a/usual2": "F,v1,-,-",
      "a/edited": "M,v2,-,-",
      "a/formless": undefined,
      "a/lost": undefined,
    });
    expect(await formsOf(other)).toEqual([["a/usual", "N,v1,-,-"]]);
    await second.close(true);
  });

  it("entries of a function's own state are there after a kill, until they are deleted or the function's last view is", async () => {
    const { open, kill } = await place();
    const first = await open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    const other = await first.openView("copy", "other", "/ConfigMap");
    await first.openView("greet", "settings", "/ConfigMap");
    const put = (store: Checkpoint, name: string, key: string, value: string | undefined) =>
      commit(store, { state: [{ function: name, key, value }] });
    await put(first, "copy", "a", "1");
    await put(first, "copy", "b", '"one"');
    await put(first, "copy", "b", '{"ö":"two"}');
    await put(first, "copy", "c", "3");
    await put(first, "copy", "c", undefined);
    await put(first, "greet", "a", "null");
    expect([...first.ownState("copy")].toSorted()).toEqual([
      ["a", "1"],
      ["b", '{"ö":"two"}'],
    ]);
    await first.sync();
    await kill(first);
    const second = await open();
    expect([...second.ownState("copy")].toSorted()).toEqual([
      ["a", "1"],
      ["b", '{"ö":"two"}'],
    ]);
    expect([...second.ownState("greet")]).toEqual([["a", "null"]]);
    await second.retire([id], 10);
    await second.purge(11);
    expect(second.ownState("copy").size).toBe(2);
    await second.retire([other.id], 12);
    await second.purge(13);
    expect(second.ownState("copy").size).toBe(0);
    await second.sync();
    await kill(second);
    const third = await open();
    expect(third.ownState("copy").size).toBe(0);
    expect([...third.ownState("greet")]).toEqual([["a", "null"]]);
    await third.close(true);
  });

  it("a later write of a key replaces the earlier one, and a key can be forgotten", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { known: [{ view: id, key: "a/x", state: state("5", "old") }] });
    await commit(store, { known: [{ view: id, key: "a/x", state: { ...state("6"), deleted: true, matched: false } }] });
    expect((await knownOf(store, id))["a/x"]).toMatchObject({
      resourceVersion: resourceVersion("6"),
      deleted: true,
      matched: false,
    });
    expect(await store.body(id, "a/x")).toBeUndefined();
    await commit(store, { known: [{ view: id, key: "a/x", state: undefined }] });
    expect(await knownOf(store, id)).toEqual({});
  });

  it("a body that is left as it is counts as older than its object, until the object's own is written", async () => {
    const { open, kill, keepsBodies = true } = await place();
    const first = await open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    const put = (known: Partial<Batch>) => commit(first, known);
    await put({ known: [{ view: id, key: "a/x", state: state("5", "five") }] });
    await put({ known: [{ view: id, key: "a/x", state: { ...state("6"), body: "older" } }] });
    expect(await first.body(id, "a/x")).toEqual({ bytes: Buffer.from("five"), isOlder: true });
    expect((await knownOf(first, id))["a/x"]?.resourceVersion).toBe("6");
    await put({ known: [{ view: id, key: "a/y", state: { ...state("7"), body: "older" } }] });
    expect(await first.body(id, "a/y")).toBeUndefined();
    const bodies = ["a/x", "a/y", "a/gone"].map((key) => ({ view: id, key, body: Buffer.from("six") }));
    await put({ bodies });
    await first.sync();
    await kill(first);
    const second = await open();
    const six = keepsBodies ? { bytes: Buffer.from("six"), isOlder: false } : undefined;
    expect([await second.body(id, "a/x"), await second.body(id, "a/y")]).toEqual([six, six]);
    expect(Object.keys(await knownOf(second, id))).toEqual(["a/x", "a/y"]);
    await commit(second, { known: [{ view: id, key: "a/x", state: state("8") }] });
    expect(await second.body(id, "a/x")).toBeUndefined();
  });

  it("a cursor without a low-water mark is kept as one", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { cursors: [cursor(id, undefined)] });
    expect((await store.views())[0]?.cursors[0]?.lowWaterMark).toBeUndefined();
    await commit(store, { droppedCursors: [{ view: id, namespace: "team-a" }] });
    expect((await store.views())[0]?.cursors).toEqual([]);
  });

  it("a cursor that is given up and taken up again in one commit is there", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { cursors: [cursor(id, "5")] });
    const droppedCursors = [{ view: id, namespace: "team-a" }];
    await commit(store, { droppedCursors, cursors: [cursor(id, "9")] });
    expect((await store.views())[0]?.cursors).toEqual([cursor(id, "9")]);
  });

  it("spilled events come back in order of arrival whatever order they were written in", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { spill: [9, 2, 5].map((sequence) => spilledEvent(id, sequence)) });
    await commit(store, { spill: [spilledEvent(id, 3), spilledEvent(id, 1, { function: "other" })] });
    expect((await store.spilled("copy", 2, 2)).map((event) => event.sequence)).toEqual([3, 5]);
    await commit(store, { unspill: [{ function: "copy", sequence: 5 }] });
    expect([...(await store.spillHeaders("copy"))].map((event) => event.sequence)).toEqual([2, 3, 9]);
  });

  it("spilled events are read no further than their bodies may take room, but one at least", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const body = Buffer.alloc(1_000, "x");
    await commit(store, { spill: [1, 2, 3, 4].map((sequence) => spilledEvent(id, sequence, { body, oldBody: body })) });
    const read = async (bytes: number) => (await store.spilled("copy", 0, 10, bytes)).map(({ sequence }) => sequence);
    expect([await read(1), await read(4_500), await read(1_000_000)]).toEqual([[1], [1, 2, 3], [1, 2, 3, 4]]);
  });

  it("an object's last body, an event that waits and a dead letter keep nothing alive of the chunk that they came in", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const chunk = Buffer.allocUnsafeSlow(64 * 1024).fill(" ");
    const part = chunk.subarray(100, 100 + chunk.write('{"n":1}', 100));
    const [number = ""] = await commit(store, {
      known: [{ view: id, key: "a/x", state: { ...state("5"), body: part } }],
      spill: [spilledEvent(id, 1, { body: part, oldBody: part })],
      deadLetters: [{ ...letter(id), body: part, oldBody: part }],
    });
    const kept = [(await store.spilled("copy", 0, 1))[0], await store.deadLetter(number)];
    const last = (await store.body(id, "a/x"))?.bytes ?? part;
    const bodies = [last, ...kept.flatMap((each) => [each?.body ?? part, each?.oldBody ?? part])];
    expect(bodies.map(String)).toEqual(Array(5).fill('{"n":1}'));
    expect(bodies.map(({ buffer }) => buffer === chunk.buffer)).toEqual(Array(5).fill(false));
  });

  it("a retired view is hidden, comes back as it was within its time, and is purged after it", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { known: [{ view: id, key: "a/x", state: state("5") }], cursors: [cursor(id, "9")] });
    await commit(store, { spill: [spilledEvent(id, 1)] });
    await store.retire([id], 1_000);
    const retired = await store.retiredViews();
    expect([await store.views("copy"), retired.map((view) => [view.id, view.cursors.length])]).toEqual([[], [[id, 1]]]);
    expect([await store.retiredViews(1_000), (await store.retiredViews(1_001)).length]).toEqual([[], 1]);
    expect(await store.purge(1_000)).toBe(0);
    const back = await store.openView("copy", "settings", "/ConfigMap");
    expect([back.id, back.cursors[0]?.lowWaterMark, await store.retiredViews()]).toEqual([id, "9", []]);
    expect(await store.purge(9_999)).toBe(0);
    await store.retire([id], 2_000);
    expect(await store.purge(2_001)).toBe(1);
    expect([await knownOf(store, id), [...(await store.spillHeaders("copy"))]]).toEqual([{}, []]);
    const fresh = await store.openView("copy", "settings", "/ConfigMap");
    expect([fresh.cursors, await knownOf(store, fresh.id)]).toEqual([[], {}]);
  });

  it("what had begun goes with the view it was of, and no other view ever has its number", async () => {
    const store = await (await place()).open();
    const stays = await store.openView("other", "settings", "/ConfigMap");
    const goes = await store.openView("copy", "settings", "/ConfigMap");
    const started = (view: number) => ({
      view,
      key: "a/x",
      id: "u1/6/Added",
      resourceVersion: resourceVersion("6"),
      attempt: 1,
    });
    const row = (id: number, ...views: number[]) => ({
      id,
      started: views.map((view) => ({ ...started(view), type: "Added" as const })),
    });
    await commit(store, { journal: [row(1, goes.id), row(2, goes.id, stays.id), row(3, stays.id)] });
    await store.retire([goes.id], 1_000);
    await store.purge(1_001);
    const left = (await store.begun()).map(({ id, started: each }) => [id, each.map(({ view }) => view)]);
    expect(left).toEqual([
      [2, [stays.id]],
      [3, [stays.id]],
    ]);
    expect((await store.openView("third", "settings", "/ConfigMap")).id).not.toBe(goes.id);
  });

  it("a dead letter goes home to its trigger, even if that was gone for longer than positions are kept", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { deadLetters: [letter(id)] });
    await store.retire([id], 1_000);
    await store.purge(1_001);
    const letters = new DeadLetters(store);
    await store.openView("other", "settings", "/ConfigMap");
    await store.openView("copy", "settings", "apps/Deployment");
    await expect(letters.replay(["1"])).rejects.toMatchObject({ code: "WF_CHECKPOINT_LETTER_HOMELESS" });
    const back = await store.openView("copy", "settings", "/ConfigMap");
    await letters.replay(["1"]);
    expect((await store.spilled("copy", 0, 9)).map(({ view }) => view)).toEqual([back.id]);
  });

  it("a replayed dead letter stands at the end of the spill, whole and flagged, and is no letter any more", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { deadLetters: [letter(id), letter(id)], spill: [spilledEvent(id, 11)] });
    const letters = new DeadLetters(store);
    expect((await letters.list({ function: "copy" })).map((it) => [it.letter, it.attempts])).toEqual([
      ["1", 5],
      ["2", 5],
    ]);
    expect(await letters.list({ function: "other" })).toEqual([]);
    await letters.replay(["1"]);
    const { sequence: _, ...event } = spilledEvent(id, 7, {
      oldBody: Buffer.from("{}"),
      replayed: true,
      redelivered: true,
    });
    expect((await store.spilled("copy", 0, 9)).at(-1)).toEqual({ ...event, sequence: 12 });
    await letters.drop(["2"]);
    expect(await letters.list()).toEqual([]);
  });

  it("dead letters are listed a page at a time, oldest first, and counted", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const ids = await commit(store, { deadLetters: Array.from({ length: 1_005 }, () => letter(id)) });
    const first = await store.deadLetters();
    const rest = await store.deadLetters({ function: "copy", after: first.at(-1)?.letter });
    expect(ids).toEqual([...first, ...rest].map((it) => it.letter));
    expect([first.length, rest.length, store.deadLetterStock("copy").count]).toEqual([1_000, 5, 1_005]);
    expect((await store.deadLetters({ after: "3", limit: 2 })).map((it) => it.letter)).toEqual(["4", "5"]);
    expect(store.deadLetterStock("other").count).toBe(0);
  });

  it("a function's dead letters keep within its limit: the oldest bodies go first, and then the oldest letters", async () => {
    const { open, kill } = await place();
    const store = await open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await store.limitDeadLetters("copy", { maxCount: 5, maxBytes: 350_000 });
    for (let n = 0; n < 6; n++) await commit(store, { deadLetters: [large(id)] });
    const kept = async (from: Checkpoint) =>
      (await from.deadLetters()).map((it) => `${it.letter} ${it.bodyDropped ? "empty" : "whole"} ${it.error.message}`);
    const expected = ["2 empty no", "3 empty no", "4 whole no", "5 whole no", "6 whole no"];
    expect(await kept(store)).toEqual(expected);
    expect(store.deadLetterStock("copy")).toMatchObject({
      count: 5,
      withoutBody: 2,
      lettersDropped: 1,
      bodiesDropped: 3,
    });
    expect((await store.deadLetter("2"))?.body).toHaveLength(0);
    await expect(new DeadLetters(store).replay(["2"])).rejects.toMatchObject({ code: "WF_CHECKPOINT_LETTER_EMPTY" });
    await store.sync();
    await kill(store);
    const next = await open();
    expect(await kept(next)).toEqual(expected);
    await next.limitDeadLetters("copy", { maxCount: 2, maxBytes: 150_000 });
    expect(await kept(next)).toEqual(["5 empty no", "6 whole no"]);
    await new DeadLetters(next).replay(["6"]);
    expect(next.deadLetterStock("copy")).toMatchObject({ count: 1, withoutBody: 1 });
  });

  it("a dead letter that is larger than all its function may keep stays without its body, and costs no other", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await store.limitDeadLetters("copy", { maxCount: 5, maxBytes: 150_000 });
    await commit(store, { deadLetters: [large(id), large(id, 200_000)] });
    expect((await store.deadLetters()).map(({ bodyDropped }) => bodyDropped)).toEqual([false, true]);
  });

  it("an unknown dead letter is refused, and all of the call with it", async () => {
    const store = await (await place()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { deadLetters: [letter(id)] });
    const letters = new DeadLetters(store);
    for (const unknown of ["99", "x", "", "1e3"]) {
      await expect(letters.drop(["1", unknown])).rejects.toMatchObject({ code: "WF_CHECKPOINT_NO_DEAD_LETTER" });
    }
    expect(await letters.list()).toHaveLength(1);
  });
}
