import type { DatabaseSync, StatementSync } from "node:sqlite";
import { z } from "zod";
import { resourceVersion } from "../../base/resource-version.ts";
import type { KnownBody, KnownIdentity, KnownState, KnownWrite, LastBody } from "../batch.ts";
import { bytes, formText, readForm, readKeys } from "../rows.ts";

/** The bits of `known.flags`. `olderBody`: the row in `body` belongs to an earlier state. */
const flag = { deleted: 1, matched: 2, olderBody: 4 } as const;

/** Maximum number of rows read from a view at a time, in 8 ms. */
const pageRows = 1_600;
/** Rows of the log that a close folds in one turn of the event loop, in 3 to 12 ms if all are live. */
const foldedAtOnce = 256;
/** Default number of rows in the log. They take 3 MB of the file, 2 MB of memory, and 80 ms of the next start. */
const mostLoggedRows = 32_768;
/** Bytes of bodies that are written in one step, in 5 to 10 ms. */
const stepBytes = 1024 * 1024;
/** Bytes of bodies between two checks whether the store has room for more. */
const checkedBytes = 1024 * 1024;

const kind = {
  /** The object's present state. Its stored body stays, and is older. */
  state: 0,
  /** The object's row in the table is the newest again. */
  table: 1,
  /** The stored body belongs to the object's state in the log. */
  own: 2,
} as const;

interface LogRecord {
  readonly seq: number;
  readonly rows: number;
  /** Number of rows that are the newest of their objects. */
  live: number;
}

/** Divides one transaction into steps by the bytes of the bodies that it writes. */
export class WriteStep {
  private bytes = 0;

  /** Counts written bytes. Returns whether the step is full, and begins the next one then. */
  isFull(written: number): boolean {
    this.bytes += written;
    if (this.bytes < stepBytes) return false;
    this.bytes = 0;
    return true;
  }
}

type Pair = [view: number, key: string];
type LoggedState = [
  ...Pair,
  uid: string,
  resourceVersion: string,
  hash: string,
  flags: number,
  keys: string | null,
  form: string | null,
];

const pairs = z.array(z.tuple([z.number(), z.string()]));
const states = z.array(
  z.tuple([
    z.number(),
    z.string(),
    z.string(),
    z.string(),
    z.string(),
    z.number(),
    z.string().nullable(),
    // Absent in rows of a runtime that recorded no form.
    z.string().nullable().default(null),
  ]),
);

/**
 * Known objects: a table, with a log of changes in front of it. A change without a new body is written into one log record
 * together with all others of its commit, instead of into a separate page of the table. Once the log is long, each new record
 * folds the oldest one into the table, without the rows that have changed since.
 */
export class SqliteKnown {
  private readonly db: DatabaseSync;
  private readonly most: number;
  private readonly run: ReturnType<typeof prepare>;
  /** By view and key: the record with the object's newest row, unless the table has it. */
  private readonly newest = new Map<number, Map<string, LogRecord>>();
  /** By view: those of these objects whose stored body is up to date. */
  private readonly own = new Map<number, Set<string>>();
  /** Oldest first, from index `first` on. */
  private records: LogRecord[] = [];
  private first = 0;
  private rows = 0;
  private lastSeq = 0;
  /** Estimated pages written since the last `takePages`. */
  private touched = 0;
  /** True after a rollback: the log must be read again before it is used. */
  private isStale = true;
  /** Whether the store has room for bodies, and the bytes of bodies written since that was checked. */
  private hasRoom = true;
  private unchecked = Number.POSITIVE_INFINITY;
  /** Size of the file, in bytes, from which on no body is stored. */
  bodyLimit = Number.POSITIVE_INFINITY;
  /** The record that was read last. */
  private lastRead: { readonly seq: number; readonly rows: readonly LoggedState[] } | undefined;

  /** @param most maximum number of rows in the log before the oldest are folded. Default 32,768. */
  constructor(db: DatabaseSync, most = mostLoggedRows) {
    this.db = db;
    this.most = most;
    this.run = prepare(db);
    this.freshen();
  }

  /**
   * Writes within the open transaction. `rolledBack` must follow if that is rolled back. Yields after each full step. Reads may
   * come between: they find some of the objects in their new states.
   */
  *write(known: readonly KnownWrite[], bodies: readonly LastBody[], step: WriteStep): Generator<void, void> {
    this.freshen();
    // If the functions' last bodies fill half of the disk, further ones are dropped, as a store without bodies does: a full disk
    // would stop all functions.
    if (!this.hasRoom || this.unchecked > checkedBytes) {
      this.unchecked = 0;
      this.hasRoom = Number(this.run.size.get()?.bytes) < this.bodyLimit;
    }
    const logged: LoggedState[] = [];
    const table: Pair[] = [];
    for (const write of known) {
      const { view, key, state } = write;
      if (state?.body === "older") logged.push(rowOf(view, key, state));
      else {
        if (this.leaveLog(view, key)) table.push([view, key]);
        this.put(write);
        if (step.isFull(state?.body?.length ?? 0)) yield;
      }
    }
    this.log(kind.state, logged);
    this.log(kind.table, table);
    const own: Pair[] = [];
    for (const body of bodies) {
      if (this.putLastBody(body)) own.push([body.view, body.key]);
      if (step.isFull(body.body.length)) yield;
    }
    this.log(kind.own, own);
    while (this.rows > this.most) this.foldOldest();
  }

  /** Folds rows of the log within the open transaction: some, or `all`. */
  fold(all = false): void {
    this.freshen();
    const until = all ? 0 : Math.max(0, this.rows - foldedAtOnce);
    while (this.rows > until) this.foldOldest();
  }

  /** True if the log is known to be empty. */
  get isFolded(): boolean {
    return this.rows === 0 && !this.isStale;
  }

  /** Called after the open transaction was rolled back. */
  rolledBack(): void {
    this.isStale = true;
  }

  /** Returns the records with rows of a view's objects, oldest first. */
  recordsOf(view: number): readonly Pick<LogRecord, "seq" | "rows">[] {
    this.freshen();
    return [...new Set(this.newest.get(view)?.values())].toSorted((a, b) => a.seq - b.seq);
  }

  /** Visits a view's objects whose newest row is in record `seq`. Visits nothing if the record was folded meanwhile. */
  logged(view: number, seq: number, visit: (key: string, identity: KnownIdentity) => void): void {
    this.freshen();
    if (this.run.read.get(seq) === undefined) return;
    for (const [ofView, key, uid, version, hash, flags, keys, form] of this.statesOf({ seq })) {
      if (ofView !== view || this.newest.get(view)?.get(key)?.seq !== seq) continue;
      visit(key, identityOf({ uid, resource_version: version, hash, flags, keys, form }));
    }
  }

  /** Returns the estimated number of pages written since the last call. */
  takePages(): number {
    const pages = this.touched;
    this.touched = 0;
    return pages;
  }

  /** Visits a page of a view's objects in the table, after a key. Returns the last key of a full page. */
  page(view: number, after: string, visit: (key: string, identity: KnownIdentity) => void): string | undefined {
    const rows = this.run.page.all(view, after, pageRows);
    for (const row of rows) visit(String(row.key), identityOf(row));
    return rows.length < pageRows ? undefined : String(rows.at(-1)?.key);
  }

  body(view: number, key: string): KnownBody | undefined {
    this.freshen();
    const row = this.run.body.get(view, key);
    const body = bytes(row?.bytes);
    if (!body) return undefined;
    const isOlder = this.newest.get(view)?.has(key)
      ? !this.own.get(view)?.has(key)
      : (Number(row?.flags) & flag.olderBody) !== 0;
    return { bytes: body, isOlder };
  }

  /** Removes these views from the indexes of the log. Their rows in the table go with the rows of the views. */
  forget(views: readonly number[]): void {
    this.freshen();
    for (const view of views) {
      for (const record of this.newest.get(view)?.values() ?? []) record.live--;
      this.newest.delete(view);
      this.own.delete(view);
    }
  }

  /** Reads the log again if its contents are not known. */
  private freshen(): void {
    if (!this.isStale) return;
    this.lastRead = undefined;
    this.newest.clear();
    this.own.clear();
    this.records = [];
    this.first = this.rows = 0;
    const views = new Set(
      this.db
        .prepare("SELECT id FROM view")
        .all()
        .map(({ id }) => Number(id)),
    );
    for (const row of this.run.log.iterate()) {
      const isState = row.kind === kind.state;
      const rows = (isState ? states : pairs).parse(JSON.parse(String(row.rows)));
      const record = this.append(Number(row.seq), rows.length);
      for (const [view, key] of rows) {
        if (!views.has(view)) continue;
        if (isState) this.enter(view, key, record);
        else if (row.kind === kind.table) this.leaveLog(view, key);
        else this.ownOf(view).add(key);
      }
    }
    this.isStale = false;
  }

  private append(seq: number, rows: number): LogRecord {
    const record = { seq, rows, live: 0 };
    this.records.push(record);
    this.rows += rows;
    this.lastSeq = seq;
    return record;
  }

  private log(of: number, rows: readonly (LoggedState | Pair)[]): void {
    if (rows.length === 0) return;
    const text = JSON.stringify(rows);
    const record = this.append(this.lastSeq + 1, rows.length);
    this.run.append.run(record.seq, of, text);
    this.touched += 1 + text.length / 2_000;
    if (of === kind.state) for (const [view, key] of rows) this.enter(view, key, record);
  }

  /** Records that a log record has the object's newest row. */
  private enter(view: number, key: string, record: LogRecord): void {
    let ofView = this.newest.get(view);
    if (!ofView) {
      ofView = new Map();
      this.newest.set(view, ofView);
    }
    const before = ofView.get(key);
    if (before) before.live--;
    ofView.set(key, record);
    record.live++;
    const own = this.own.get(view);
    if (own && own.size > 0) own.delete(key);
  }

  /** Records that the table has, or will have, the object's newest row. Returns whether the log had it. */
  private leaveLog(view: number, key: string): boolean {
    const ofView = this.newest.get(view);
    const before = ofView?.get(key);
    if (!before) return false;
    before.live--;
    ofView?.delete(key);
    this.own.get(view)?.delete(key);
    return true;
  }

  private ownOf(view: number): Set<string> {
    const found = this.own.get(view);
    if (found) return found;
    const made = new Set<string>();
    this.own.set(view, made);
    return made;
  }

  /** Writes the body of an object's present state. Returns whether it did so and the object's row is in the log. */
  private putLastBody({ view, key, body }: LastBody): boolean {
    const { run } = this;
    // The older body stays, and the row says that it is older.
    if (!this.hasRoom) return false;
    const isLogged = this.newest.get(view)?.has(key) === true;
    const statement = isLogged ? run.idOf : run.bodyIsNew;
    let id = statement.get(view, key)?.id;
    if (id === undefined && isLogged) id = this.foldRow(view, key);
    if (id === undefined) return false;
    run.putBody.run(Number(id), body);
    this.unchecked += body.length;
    this.touched += 1 + body.length / 2_000;
    if (isLogged) this.ownOf(view).add(key);
    return isLogged;
  }

  private foldOldest(): void {
    const record = this.records[this.first];
    if (!record) return;
    this.first++;
    if (2 * this.first > this.records.length) {
      this.records = this.records.slice(this.first);
      this.first = 0;
    }
    this.rows -= record.rows;
    if (record.live > 0) {
      for (const row of this.statesOf(record)) {
        const [view, key] = row;
        if (this.newest.get(view)?.get(key) !== record) continue;
        const isOwn = this.own.get(view)?.has(key) === true;
        this.leaveLog(view, key);
        this.putRow(row, isOwn ? 0 : flag.olderBody);
      }
    }
    this.run.drop.run(record.seq);
  }

  /**
   * Copies an object's row from the log into the table if the table has no row for it. The row in the log remains valid. Returns
   * the table's id of the object.
   */
  private foldRow(view: number, key: string): number | undefined {
    const record = this.newest.get(view)?.get(key);
    const row = record && this.statesOf(record).find(([ofView, ofKey]) => ofView === view && ofKey === key);
    if (!row) return undefined;
    this.putRow(row, flag.olderBody);
    return Number(this.run.idOf.get(view, key)?.id);
  }

  private statesOf({ seq }: Pick<LogRecord, "seq">): readonly LoggedState[] {
    if (this.lastRead?.seq !== seq) {
      this.lastRead = { seq, rows: states.parse(JSON.parse(String(this.run.read.get(seq)?.rows))) };
    }
    return this.lastRead.rows;
  }

  private putRow([view, key, uid, version, hash, flags, keys, form]: LoggedState, body: number): void {
    this.touched++;
    this.run.put.run(view, key, uid, version, hash, flags | body, keys, form);
  }

  private put({ view, key, state }: KnownWrite): void {
    const { run } = this;
    this.touched++;
    if (!state) {
      run.forget.run(view, key);
      return;
    }
    const { body } = state;
    const id = Number(run.putId.get(...rowOf(view, key, state))?.id);
    if (!(body instanceof Uint8Array) || !this.hasRoom) {
      run.dropBody.run(id);
      return;
    }
    run.putBody.run(id, body);
    this.unchecked += body.length;
    this.touched += body.length / 2_000;
  }
}

function identityOf(row: Readonly<Record<string, unknown>>): KnownIdentity {
  const flags = Number(row.flags);
  const keys = readKeys(row.keys, String(row.resource_version));
  const form = readForm(row.form, String(row.resource_version));
  return {
    uid: String(row.uid),
    resourceVersion: resourceVersion(String(row.resource_version)),
    hash: String(row.hash),
    deleted: (flags & flag.deleted) !== 0,
    matched: (flags & flag.matched) !== 0,
    ...(keys && { keys }),
    ...(form !== undefined && { form: shared(form) }),
  };
}

/** Shares the strings of forms, because all rows have one of a few. */
const shared = (() => {
  const forms = new Map<string, string>();
  return (form: string): string => {
    const found = forms.get(form);
    if (found !== undefined) return found;
    if (forms.size > 1_000) forms.clear();
    forms.set(form, form);
    return form;
  };
})();

const rowOf = (view: number, key: string, state: KnownState): LoggedState => {
  const { uid, resourceVersion, hash, deleted, matched, form } = state;
  const flags = (deleted ? flag.deleted : 0) | (matched ? flag.matched : 0);
  return [view, key, uid, resourceVersion, hash, flags, keysText(state), formText(form, resourceVersion)];
};

/**
 * Returns a state's keys as the column stores them: the resourceVersion that they belong to, then the keys. `null` if the state
 * has no keys.
 */
const keysText = ({ keys, resourceVersion }: KnownIdentity): string | null =>
  keys ? JSON.stringify([resourceVersion, ...keys]) : null;

const put = `
INSERT INTO known (view, key, uid, resource_version, hash, flags, keys, form) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (view, key) DO UPDATE SET uid = excluded.uid, resource_version = excluded.resource_version,
  hash = excluded.hash, flags = excluded.flags, keys = excluded.keys, form = excluded.form`;

const prepare = (db: DatabaseSync) =>
  ({
    put: db.prepare(put),
    putId: db.prepare(`${put} RETURNING id`),
    putBody: db.prepare("INSERT INTO body VALUES (?, ?) ON CONFLICT (known) DO UPDATE SET bytes = excluded.bytes"),
    bodyIsNew: db.prepare(
      `UPDATE known SET flags = flags & ~${flag.olderBody} WHERE view = ? AND key = ? RETURNING id`,
    ),
    idOf: db.prepare("SELECT id FROM known WHERE view = ? AND key = ?"),
    dropBody: db.prepare("DELETE FROM body WHERE known = ?"),
    size: db.prepare(
      "SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    ),
    forget: db.prepare("DELETE FROM known WHERE view = ? AND key = ?"),
    // Prepared once: preparing takes 10 us, and filters read a body for each event.
    body: db.prepare("SELECT bytes, flags FROM known JOIN body ON body.known = known.id WHERE view = ? AND key = ?"),
    page: db.prepare(
      "SELECT key, uid, resource_version, hash, flags, keys, form FROM known WHERE view = ? AND key > ? ORDER BY key LIMIT ?",
    ),
    append: db.prepare("INSERT INTO known_log VALUES (?, ?, ?)"),
    log: db.prepare("SELECT seq, kind, rows FROM known_log ORDER BY seq"),
    read: db.prepare("SELECT rows FROM known_log WHERE seq = ?"),
    drop: db.prepare("DELETE FROM known_log WHERE seq = ?"),
  }) satisfies Record<string, StatementSync>;
