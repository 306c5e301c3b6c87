import { cpSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { type Batch, emptyBatch, type KnownIdentity, type KnownWrite } from "../../../runtime/journal/batch.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";
import { MemoryStore } from "../memory-store.ts";
import { spilledEvent } from "../store-contract.ts";

const keys = ["team-a/web", "team-a/db", "team-b/web"];
const key = fc.constantFrom(...keys);
const view = fc.integer({ min: 0, max: 1 });
const body = fc.option(fc.constantFrom(Buffer.from('{"n":1}'), Buffer.from('{"n":2}')), { nil: undefined });
const version = fc.integer({ min: 1, max: 3 }).map((number) => resourceVersion(String(number)));
const state = fc.record({
  uid: fc.constantFrom("u1", "u1", "u1", "u2"),
  resourceVersion: version,
  hash: fc.constantFrom("", "", "", "h1"),
  deleted: fc.boolean(),
  matched: fc.boolean(),
  body: fc.oneof({ weight: 2, arbitrary: fc.constant("older" as const) }, { weight: 3, arbitrary: body }),
  keys: fc.option(fc.constant(["team-a/owner"]), { nil: undefined, freq: 4 }),
});
const write = fc.record({ view, key, state: fc.option(state, { nil: undefined, freq: 3 }) });
const last = fc.record({ view, key, body: body.map((bytes) => bytes ?? Buffer.from("{}")) });

/**
 * A batch, a batch that fails as a whole, a view that is removed and created again, a read of all known rows, or an end.
 */
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      known: fc.array(write, { minLength: 1, maxLength: 4 }),
      bodies: fc.array(last, { maxLength: 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ refused: fc.array(write, { minLength: 1, maxLength: 2 }) }) },
  { weight: 1, arbitrary: fc.record({ purged: view }) },
  { weight: 1, arbitrary: fc.constant({ looks: true }) },
  { weight: 2, arbitrary: fc.record({ ends: fc.constantFrom("killed", "clean") }) },
);

/** Each object at most once, as in a commit. */
const once = (writes: readonly KnownWrite[]): KnownWrite[] => [
  ...new Map(writes.map((each) => [`${each.view}/${each.key}`, each])).values(),
];

class Known {
  store: Checkpoint;
  private ids: number[] = [];

  constructor(store: Checkpoint) {
    this.store = store;
  }

  /** Opens two views without known objects. */
  async openNew(): Promise<void> {
    await this.purge([0, 1]);
  }

  async purge(views: readonly number[]): Promise<void> {
    await this.store.retire(
      views.map((view) => this.idOf(view)),
      1,
    );
    await this.store.purge(2);
    const opened = ["one", "two"].map((name) => this.store.openView(name, "t", "/Pod"));
    this.ids = (await Promise.all(opened)).map(({ id }) => id);
  }

  idOf(view: number): number {
    return this.ids[view] ?? 0;
  }

  batch(known: readonly KnownWrite[], over: Partial<Batch> = {}): Batch {
    return { ...emptyBatch, ...over, known: once(known).map((each) => ({ ...each, view: this.idOf(each.view) })) };
  }

  async bodies(): Promise<unknown> {
    const found: unknown[] = [];
    for (const id of this.ids) {
      for (const key of keys) {
        const body = await this.store.body(id, key);
        found.push(body && { text: body.bytes.toString(), isOlder: body.isOlder });
      }
    }
    return found;
  }

  async all(): Promise<unknown> {
    const found: Record<string, unknown>[] = [];
    for (const [index, id] of this.ids.entries()) {
      const known = new Map<string, KnownIdentity>();
      await this.store.known(id, (key, identity) => known.set(key, identity));
      for (const key of keys) {
        const identity = known.get(key);
        const body = identity && (await this.store.body(id, key));
        found.push({ index, key, identity, body: body && { text: body.bytes.toString(), isOlder: body.isOlder } });
      }
    }
    return found;
  }
}

/** The file of a killed process, with its write-ahead log. */
const copyOf = (folder: string, to: string): void => cpSync(folder, to, { recursive: true });

test("the file knows of each object what memory knows, whatever was written, refused, purged, killed and ended before", async () => {
  const root = mkdtempSync(join(tmpdir(), "watchfire-known-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  let folders = 0;
  const newFolder = () => join(root, String(folders++));
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 2, maxLength: 20 }),
      fc.integer({ min: 0, max: 8 }),
      async (steps, loggedRows) => {
        let folder = newFolder();
        const open = () => new Checkpoint(new SqliteJournal({ folder, bootId: "boot", loggedRows }));
        const sqlite = new Known(open());
        const memory = new Known(new MemoryStore());
        for (const each of [sqlite, memory]) await each.openNew();
        for (const each of steps) {
          if ("purged" in each) {
            for (const one of [sqlite, memory]) await one.purge([each.purged]);
          } else if ("refused" in each) {
            // No view has this number: the file refuses the event, and with it the whole batch.
            const refused = sqlite.batch(each.refused, { spill: [spilledEvent(987_654, 1)] });
            await expect(sqlite.store.commit(refused)).rejects.toMatchObject({ code: expect.stringMatching("WF_") });
          } else if ("looks" in each) {
            expect(await sqlite.all()).toEqual(await memory.all());
          } else if ("ends" in each) {
            const killed = newFolder();
            if (each.ends === "killed") copyOf(folder, killed);
            await sqlite.store.close(true);
            if (each.ends === "killed") folder = killed;
            else expect(versionOf(folder)).toBe(2);
            sqlite.store = open();
          } else {
            for (const one of [sqlite, memory]) {
              const bodies = each.bodies.map((last) => ({ ...last, view: one.idOf(last.view) }));
              await one.store.commit(one.batch(each.known, { bodies }));
            }
          }
          expect(await sqlite.bodies()).toEqual(await memory.bodies());
        }
        expect(await sqlite.all()).toEqual(await memory.all());
        await sqlite.store.close(true);
      },
    ),
    { numRuns: 150 },
  );
  // 150 files, each synced about twenty times: on a busy disk a sync takes 5 ms and more.
}, 120_000);

/** The schema version that an earlier version of the runtime checks. */
function versionOf(folder: string): unknown {
  const db = new DatabaseSync(join(folder, "checkpoint.db"), { readOnly: true });
  const found = db.prepare("PRAGMA user_version").get()?.user_version;
  db.close();
  return found;
}

/** A store whose log contains the changes of so many objects, while the table does not have their newest rows yet. */
async function withLog(
  objects: number,
  loggedRows?: number,
): Promise<{ readonly store: Checkpoint<SqliteJournal>; readonly folder: string; readonly id: number }> {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-known-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = new Checkpoint(new SqliteJournal({ folder, loggedRows }));
  const { id } = await store.openView("copy", "t", "/Pod");
  const states = (body: "older" | undefined, rv: string): KnownWrite[] =>
    Array.from({ length: objects }, (_, number) => ({
      view: id,
      key: `team-a/pod-${number}`,
      state: { uid: `u${number}`, resourceVersion: resourceVersion(rv), hash: "", deleted: false, matched: true, body },
    }));
  await store.commit({ ...emptyBatch, known: states(undefined, "1") });
  const changes = states("older", "2");
  for (let from = 0; from < objects; from += 50) {
    await store.commit({ ...emptyBatch, known: changes.slice(from, from + 50) });
  }
  return { store, folder, id };
}

test("what is known is read without a write: a full disk keeps no function from its start", async () => {
  const { store, folder, id } = await withLog(500);
  const written = () => statSync(join(folder, "checkpoint.db-wal")).size;
  const before = written();
  const versions: string[] = [];
  await store.known(id, (_, { resourceVersion }) => versions.push(resourceVersion));
  expect([versions.length, new Set(versions), written()]).toEqual([500, new Set(["2"]), before]);
  await store.close(true);
});

test("an end folds the log with the event loop turning, and what it kept is there", async () => {
  const { store, folder, id } = await withLog(5_000);
  const reader = new DatabaseSync(join(folder, "checkpoint.db"), { readOnly: true });
  const left = reader.prepare("SELECT count(*) AS records FROM known_log");
  /** Number of records found in one turn of the event loop. */
  const found = new Set<unknown>();
  let isOver = false;
  const turn = () => {
    if (isOver) return;
    found.add(left.get()?.records);
    setImmediate(turn);
  };
  setImmediate(turn);
  await store.close(true);
  isOver = true;
  reader.close();
  expect(found.size).toBeGreaterThan(10);
  expect(versionOf(folder)).toBe(2);
  const next = new Checkpoint(new SqliteJournal({ folder }));
  const versions: string[] = [];
  await next.known(id, (_, { resourceVersion }) => versions.push(resourceVersion));
  expect([versions.length, new Set(versions)]).toEqual([5_000, new Set(["2"])]);
  await next.close(true);
});

test.each([
  ["is refused as a whole", 1, [spilledEvent(987_654, 1)]],
  ["has the log folded", 3_000, []],
])("what is known is read as it was, though a commit %s meanwhile", async (_, others, spill) => {
  const { store, id } = await withLog(5_000, 5_000);
  const { id: view } = await store.openView("other", "t", "/Pod");
  const versions: string[] = [];
  const reading = store.known(id, (_, { resourceVersion }) => versions.push(resourceVersion));
  const state = { uid: "u", resourceVersion: resourceVersion("9"), hash: "", deleted: false, matched: true } as const;
  const known = Array.from(
    { length: others },
    (_, number): KnownWrite => ({ view, key: `other-${number}`, state: { ...state, body: "older" } }),
  );
  const commits = [spill, []].map((spill) => store.commit({ ...emptyBatch, known, spill }));
  const taken = (await Promise.allSettled(commits)).map(({ status }) => status === "fulfilled");
  expect(taken).toEqual([spill.length === 0, true]);
  await reading;
  expect([versions.length, new Set(versions)]).toEqual([5_000, new Set(["2"])]);
  await store.close(true);
});
