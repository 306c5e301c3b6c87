import type { WatchfireError } from "../base/errors.ts";
import { apart } from "../v8/own-copy.ts";
import {
  type Batch,
  type Cursor,
  type DeadLetter,
  emptyBatch,
  type JournalRow,
  type KnownBody,
  type KnownIdentity,
  type KnownState,
  type NewDeadLetter,
  type Spilled,
  type SpillHeader,
  type StoredEvent,
} from "./batch.ts";
import {
  type DeadLetterCut,
  type DeadLetterLimit,
  type DeadLetterSize,
  DeadLetterStats,
  type DeadLetterStock,
} from "./dead-letter-stats.ts";
import { headerOf } from "./rows.ts";
import {
  type CheckpointStore,
  type DeadLetterPage,
  deadLetterPageSize,
  type PreviousEnd,
  type StoredView,
  type ViewRecord,
} from "./store.ts";

interface MemoryView {
  readonly id: number;
  readonly function: string;
  trigger: string;
  readonly resource: string;
  identity: string;
  manifest: string | undefined;
  retiredAt: number | undefined;
  readonly cursors: Map<string, Cursor>;
  readonly known: Map<string, MemoryObject>;
}

interface MemoryObject extends KnownIdentity {
  readonly body: Buffer | undefined;
  readonly bodyIsOlder?: boolean;
}

/** What outlives a `MemoryStore`, as a file outlives the process that wrote it. */
export class MemoryDisk {
  cluster: string | undefined;
  /** By function, since when. */
  readonly paused = new Map<string, number>();
  end: PreviousEnd = "new";
  nextView = 1;
  nextLetter = 1;
  readonly views = new Map<number, MemoryView>();
  readonly journal = new Map<number, JournalRow>();
  readonly spill = new Map<string, Spilled>();
  readonly letters = new Map<string, DeadLetter>();

  /** Forgets all positions, for those of another store. How its last runtime ended stays. */
  clear(): void {
    for (const rows of [this.views, this.journal, this.spill, this.letters, this.paused]) rows.clear();
    this.cluster = undefined;
    this.nextView = 1;
    this.nextLetter = 1;
  }

  /** Deletes a view with all it holds, and what of it had begun. */
  forgetView(id: number): void {
    this.views.delete(id);
    for (const [key, event] of this.spill) if (event.view === id) this.spill.delete(key);
    for (const [row, { started }] of this.journal) {
      const others = started.filter(({ view }) => view !== id);
      if (others.length === 0) this.journal.delete(row);
      else if (others.length < started.length) this.journal.set(row, { id: row, started: others });
    }
  }
}

/** The store in memory: what tests use, where opening another on the same disk is a restart, and what others keep copies of. */
export class MemoryStore implements CheckpointStore {
  readonly disk: MemoryDisk;
  readonly spillLimit: number = Number.POSITIVE_INFINITY;
  readonly holdsQueues: boolean = true;
  readonly writesBodies: boolean = true;
  protected readonly ledger: DeadLetterStats;
  private before: PreviousEnd;

  /** @param letterRoom for the dead letters of all functions, as `weigh` has their bytes. */
  constructor(disk: MemoryDisk = new MemoryDisk(), letterRoom = Number.POSITIVE_INFINITY) {
    this.disk = disk;
    this.ledger = new DeadLetterStats(() => letterRoom);
    this.countLetters();
    this.before = disk.end;
    disk.end = disk.end === "power-loss" ? disk.end : "killed";
  }

  get trouble(): WatchfireError | undefined {
    return undefined;
  }

  get previousEnd(): PreviousEnd {
    return this.before;
  }

  /** What a dead letter takes, in bytes. */
  protected weigh(letter: NewDeadLetter): DeadLetterSize {
    return { record: headerOf(letter).length, body: letter.body.length + (letter.oldBody?.length ?? 0) };
  }

  protected countLetters(): void {
    this.ledger.reset();
    for (const letter of this.disk.letters.values())
      this.ledger.add(letter.function, letter.letter, this.weigh(letter));
  }

  /** What is read next was left by an end of another store. */
  protected resume(end: PreviousEnd): void {
    this.before = end;
  }

  async cluster(): Promise<string | undefined> {
    return this.disk.cluster;
  }

  async setCluster(uid: string): Promise<void> {
    this.disk.cluster = uid;
  }

  async paused(): Promise<ReadonlyMap<string, number>> {
    return new Map(this.disk.paused);
  }

  async setPaused(functionName: string, since: number | undefined): Promise<void> {
    if (since === undefined) this.disk.paused.delete(functionName);
    else this.disk.paused.set(functionName, since);
  }

  async views(functionName?: string): Promise<StoredView[]> {
    return [...this.disk.views.values()]
      .filter((view) => view.retiredAt === undefined)
      .filter((view) => functionName === undefined || view.function === functionName)
      .map(describe);
  }

  async openView(functionName: string, trigger: string, resource: string): Promise<StoredView> {
    for (const view of this.disk.views.values()) {
      if (view.function !== functionName || view.trigger !== trigger || view.resource !== resource) continue;
      view.retiredAt = undefined;
      return describe(view);
    }
    const id = this.disk.nextView++;
    const view: MemoryView = {
      id,
      function: functionName,
      trigger,
      resource,
      identity: trigger,
      manifest: undefined,
      retiredAt: undefined,
      cursors: new Map(),
      known: new Map(),
    };
    this.disk.views.set(id, view);
    return describe(view);
  }

  async recordViews(records: readonly ViewRecord[]): Promise<void> {
    for (const { id, trigger, identity, manifest } of records) {
      const view = this.disk.views.get(id);
      if (view) Object.assign(view, { trigger, identity, manifest });
    }
  }

  async retiredViews(before = Number.POSITIVE_INFINITY): Promise<StoredView[]> {
    return [...this.disk.views.values()].filter((view) => (view.retiredAt ?? before) < before).map(describe);
  }

  async retire(views: readonly number[], at: number): Promise<void> {
    for (const id of views) {
      const view = this.disk.views.get(id);
      if (view) view.retiredAt ??= at;
    }
  }

  async purge(before: number): Promise<number> {
    const gone = [...this.disk.views.values()].filter((view) => (view.retiredAt ?? before) < before);
    for (const { id } of gone) this.disk.forgetView(id);
    return gone.length;
  }

  async known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void> {
    const objects = this.disk.views.get(view)?.known ?? [];
    for (const [key, { body: _, bodyIsOlder: __, ...identity }] of objects) visit(key, identity);
  }

  async body(view: number, key: string): Promise<KnownBody | undefined> {
    const { body, bodyIsOlder = false } = this.disk.views.get(view)?.known.get(key) ?? {};
    return body && { bytes: body, isOlder: bodyIsOlder };
  }

  async journal(): Promise<JournalRow[]> {
    return [...this.disk.journal.values()];
  }

  async spillHeaders(functionName: string, after = Number.NEGATIVE_INFINITY): Promise<SpillHeader[]> {
    const events = await this.spilled(functionName, after, Number.POSITIVE_INFINITY);
    return events.map((event) => ({ ...event, size: event.body.length }));
  }

  async spilled(functionName: string, after: number, limit: number, bytes?: number): Promise<Spilled[]> {
    const waiting = [...this.disk.spill.values()]
      .filter((event) => event.function === functionName && event.sequence > after)
      .sort((a, b) => a.sequence - b.sequence);
    return takeSpilled(waiting, limit, bytes);
  }

  async doubtSpilled(functionName: string): Promise<void> {
    const all = await this.spilled(functionName, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
    const spill = all.filter(({ redelivered }) => !redelivered).map((event) => ({ ...event, redelivered: true }));
    if (spill.length > 0) await this.commit({ ...emptyBatch, spill });
  }

  async deadLetters(page: DeadLetterPage = {}): Promise<DeadLetter[]> {
    return [...this.disk.letters.values()]
      .filter((letter) => page.function === undefined || letter.function === page.function)
      .filter((letter) => Number(letter.letter) > Number(page.after ?? 0))
      .slice(0, page.limit ?? deadLetterPageSize);
  }

  async limitDeadLetters(functionName: string, limit: DeadLetterLimit): Promise<void> {
    this.limitLetters(functionName, limit);
  }

  protected limitLetters(functionName: string, limit: DeadLetterLimit): DeadLetterCut[] {
    this.ledger.limit(functionName, limit);
    return this.cutLetters();
  }

  deadLetterStock(functionName: string): DeadLetterStock {
    return this.ledger.stock(functionName);
  }

  async deadLetter(letter: string): Promise<DeadLetter | undefined> {
    return this.disk.letters.get(letter);
  }

  async commit(batch: Batch): Promise<readonly string[]> {
    return this.takeIn(batch).ids;
  }

  /** In one turn. Gives the ids of the batch's dead letters, and those that had to go for them. */
  protected takeIn(batch: Batch): { readonly ids: readonly string[]; readonly cuts: readonly DeadLetterCut[] } {
    const { views, journal, spill, letters } = this.disk;
    for (const { view, key, state } of batch.known) {
      const known = views.get(view)?.known;
      if (state) known?.set(key, become(known.get(key), state));
      else known?.delete(key);
    }
    for (const { view, key, body } of batch.bodies) {
      const known = views.get(view)?.known;
      const found = known?.get(key);
      if (found) known?.set(key, { ...found, body, bodyIsOlder: false });
    }
    // A namespace may leave and come back between two commits.
    for (const { view, namespace } of batch.droppedCursors) views.get(view)?.cursors.delete(namespace);
    for (const cursor of batch.cursors) views.get(cursor.view)?.cursors.set(cursor.namespace, cursor);
    for (const row of batch.journal) journal.set(row.id, row);
    for (const id of batch.settledJournal) journal.delete(id);
    for (const event of batch.spill) spill.set(`${event.function}/${event.sequence}`, withOwnBodies(event));
    for (const { function: name, sequence } of batch.unspill) spill.delete(`${name}/${sequence}`);
    for (const letter of batch.droppedDeadLetters) {
      letters.delete(letter);
      this.ledger.remove(letter);
    }
    const ids: string[] = [];
    const cuts = batch.deadLetters.flatMap((event) => {
      const kept = this.ledger.admit(event.function, this.weigh(event)) ? event : withoutBody(event);
      const letter = String(this.disk.nextLetter++);
      letters.set(letter, { ...withOwnBodies(kept), letter, bodyDropped: kept !== event });
      ids.push(letter);
      this.ledger.add(event.function, letter, this.weigh(kept));
      return this.cutLetters();
    });
    return { ids, cuts };
  }

  private cutLetters(): DeadLetterCut[] {
    const { letters } = this.disk;
    const cuts = this.ledger.cuts();
    this.ledger.counted(cuts);
    for (const cut of cuts) {
      for (const letter of cut.letters) letters.delete(letter);
      for (const letter of cut.bodies) {
        const found = letters.get(letter);
        if (found) letters.set(letter, { ...withoutBody(found), letter, bodyDropped: true });
      }
    }
    return cuts;
  }

  async sync(): Promise<void> {}

  async close(clean: boolean): Promise<void> {
    if (clean) this.disk.end = "clean";
  }
}

function become(before: MemoryObject | undefined, { body, ...identity }: KnownState): MemoryObject {
  return body === "older"
    ? { ...identity, body: before?.body, bodyIsOlder: true }
    : { ...identity, body: body && apart(body) };
}

/** What is kept for long must not keep the chunks alive that came from sockets: they are counted nowhere by then. */
const withOwnBodies = <T extends Pick<StoredEvent, "body" | "oldBody">>(event: T): T => ({
  ...event,
  body: apart(event.body),
  oldBody: event.oldBody && apart(event.oldBody),
});

const withoutBody = (letter: NewDeadLetter): NewDeadLetter => ({
  ...letter,
  body: Buffer.alloc(0),
  oldBody: undefined,
});

/** The first `limit` of them, and none after `bytes` of bodies. */
export function takeSpilled(events: Iterable<Spilled>, limit: number, bytes = Number.POSITIVE_INFINITY): Spilled[] {
  const taken: Spilled[] = [];
  let size = 0;
  for (const event of events) {
    if (taken.length >= limit || size >= bytes) break;
    taken.push(event);
    size += event.body.length + (event.oldBody?.length ?? 0);
  }
  return taken;
}

const describe = ({ id, function: name, trigger, resource, identity, manifest, cursors }: MemoryView): StoredView => ({
  id,
  function: name,
  trigger,
  resource,
  identity,
  manifest,
  cursors: [...cursors.values()],
});
