import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type Cursor,
  emptyBatch,
  type KnownIdentity,
  type KnownWrite,
  type NewDeadLetter,
  runId,
  runSequence,
  type StartedEvent,
} from "../journal/batch.ts";
import type { Checkpoint, StoredView } from "../journal/checkpoint.ts";
import { everything, type FunctionPart, type Part } from "./part.ts";

/** Rows of one commit: few enough to hold, many enough that a commit costs nothing. */
const chunk = 1_000;
const chunkBytes = 16 * 1024 * 1024;

/**
 * Copies the rows of one store into another: positions, known objects, begun attempts, waiting events and dead letters.
 * Letters get new numbers in the same order. What functions that were removed had known is left behind. `part`: what of
 * them the other is to have; default all. It may have what other stores have brought of the same functions; what waits
 * then comes behind that. Between two chunks the event loop turns: the Lease under which this is done is to be renewed.
 * @throws the signal's reason, with a part copied
 */
export async function carryOver(
  from: Checkpoint,
  to: Checkpoint,
  { part = everything, signal }: { readonly part?: Part; readonly signal?: AbortSignal } = {},
): Promise<void> {
  await new Carriage(from, to, part, signal).run();
}

/** A view that is carried, and where its rows go. */
interface Carried {
  readonly view: StoredView;
  readonly part: FunctionPart;
  /** Its number there. */
  readonly id: number;
}

class Carriage {
  private readonly from: Checkpoint;
  private readonly to: Checkpoint;
  private readonly part: Part;
  private readonly signal: AbortSignal | undefined;
  /** By the number that a view has here. */
  private readonly views = new Map<number, Carried>();
  /** By function: what is added to the sequences of what waits, so that it comes behind what waits there. */
  private readonly behind = new Map<string, number>();

  constructor(from: Checkpoint, to: Checkpoint, part: Part, signal: AbortSignal | undefined) {
    this.from = from;
    this.to = to;
    this.part = part;
    this.signal = signal;
  }

  async run(): Promise<void> {
    await this.carryNames();
    for (const view of await this.from.views()) await this.carryView(view);
    for (const name of new Set([...this.views.values()].map(({ view }) => view.function))) await this.lineUp(name);
    await this.carryJournal();
    for (const name of this.behind.keys()) await this.carrySpill(name);
    await this.carryLetters();
  }

  private async carryNames(): Promise<void> {
    const { from, to, part } = this;
    const cluster = await from.cluster();
    if (cluster !== undefined) await to.setCluster(cluster);
    const paused = await to.paused();
    for (const [name, since] of await from.paused()) {
      if (part.of(name)) await to.setPaused(name, Math.min(since, paused.get(name) ?? since));
    }
  }

  private async carryView(view: StoredView): Promise<void> {
    const { from, to } = this;
    const part = this.part.of(view.function);
    if (!part) return;
    const before = (await this.sameThere(view)) ?? (await to.openView(view.function, view.trigger, view.resource));
    const { id } = before;
    const { trigger, identity, manifest } = view;
    // Its event ids go on there.
    if (before.manifest === undefined) await to.recordViews([{ id, trigger, identity, manifest }]);
    const carried = { view, part, id };
    this.views.set(view.id, carried);
    const found = new Map<string, KnownIdentity>();
    await to.known(id, (key, identity) => found.set(key, identity));
    const objects: [string, KnownIdentity][] = [];
    await from.known(view.id, (key, identity) => {
      const other = found.get(key);
      if (part.has(view, key, identity.keys) && !(other && part.prefers(other, identity)))
        objects.push([key, identity]);
    });
    await this.carryObjects(carried, objects);
    // Positions come after what they stand on.
    const cursors = view.cursors.flatMap((cursor): Cursor[] => {
      const other = before.cursors.find(({ namespace }) => namespace === cursor.namespace);
      const become = part.cursor(view, cursor, other);
      return become ? [{ ...become, view: id }] : [];
    });
    await to.commit({ ...emptyBatch, cursors });
  }

  /** The view of the same trigger, which another store may have under its name before a rename. */
  private async sameThere({ function: name, resource, identity, manifest }: StoredView) {
    if (manifest === undefined) return undefined;
    const isSame = (other: StoredView) =>
      other.resource === resource && other.identity === identity && other.manifest !== undefined;
    return (await this.to.views(name)).find(isSame);
  }

  private async carryObjects({ view, id }: Carried, objects: readonly [string, KnownIdentity][]): Promise<void> {
    let rows: KnownWrite[] = [];
    let older: KnownWrite[] = [];
    let bytes = 0;
    const send = async () => {
      await this.to.commit({ ...emptyBatch, known: rows });
      if (older.length > 0) await this.to.commit({ ...emptyBatch, known: older });
      [rows, older, bytes] = [[], [], 0];
      await this.turn();
    };
    // Bodies are read some at once: a store on NATS has each to itself.
    for (let at = 0; at < objects.length; at += together) {
      const some = objects.slice(at, at + together);
      const bodies = await Promise.all(some.map(([key]) => this.from.body(view.id, key)));
      for (const [index, [key, identity]] of some.entries()) {
        const body = bodies[index];
        rows.push({ view: id, key, state: { ...identity, body: body?.bytes } });
        if (body?.isOlder) older.push({ view: id, key, state: { ...identity, body: "older" } });
        bytes += body?.bytes.length ?? 0;
      }
      if (rows.length >= chunk || bytes >= chunkBytes) await send();
    }
    if (rows.length > 0) await send();
  }

  /** Finds how far the sequences of a function have come there. */
  private async lineUp(name: string): Promise<void> {
    let last = 0;
    for (const { sequence } of await this.to.spillHeaders(name)) last = Math.max(last, sequence);
    this.behind.set(name, last);
  }

  /** What had begun, for those that are to know of it. */
  private async carryJournal(): Promise<void> {
    const { from, to } = this;
    let number = Math.max(0, ...(await to.begun()).map(({ id }) => id));
    const journal = (await from.begun()).flatMap(({ started }) => {
      const ours = started.flatMap((event) => this.begun(event));
      return ours.length === 0 ? [] : [{ id: ++number, started: ours }];
    });
    await to.commit({ ...emptyBatch, journal });
  }

  private begun(event: StartedEvent): StartedEvent[] {
    const carried = this.views.get(event.view);
    if (!carried?.part.has(carried.view, event.key, undefined)) return [];
    const sequence = runSequence(event.id);
    const id = sequence === undefined ? event.id : runId(sequence + this.added(carried));
    return [{ ...event, view: carried.id, id }];
  }

  private added({ view }: Carried): number {
    return this.behind.get(view.function) ?? 0;
  }

  private async carrySpill(name: string): Promise<void> {
    for (let after = Number.NEGATIVE_INFINITY; ; ) {
      const waiting = await this.from.spilled(name, after, chunk, chunkBytes);
      if (waiting.length === 0) return;
      after = waiting.at(-1)?.sequence ?? after;
      const spill = waiting.flatMap((event) => {
        const carried = this.views.get(event.view);
        const key = `${event.namespace}/${event.name}`;
        if (!carried?.part.has(carried.view, key, undefined)) return [];
        const sequence = event.sequence + this.added(carried);
        return [{ ...event, view: carried.id, sequence, ...(event.kind === "key" && { id: runId(sequence) }) }];
      });
      await this.to.commit({ ...emptyBatch, spill });
      await this.turn();
    }
  }

  private async carryLetters(): Promise<void> {
    const { from, to } = this;
    let deadLetters: NewDeadLetter[] = [];
    let bytes = 0;
    const send = async () => {
      await to.commit({ ...emptyBatch, deadLetters });
      [deadLetters, bytes] = [[], 0];
      await this.turn();
    };
    for (let after: string | undefined; ; ) {
      const page = await from.deadLetters({ after });
      if (page.length === 0) break;
      after = page.at(-1)?.letter;
      for (const { letter: id, function: name, view, namespace, name: object, trigger } of page) {
        const carried = this.views.get(view);
        const of = carried?.view ?? { function: name, trigger, resource: "" };
        if (!this.part.of(name)?.has(of, `${namespace}/${object}`, undefined)) continue;
        const whole = await from.deadLetter(id);
        if (!whole) continue;
        const { letter: _, bodyDropped: __, ...event } = whole;
        // Of a trigger that is gone: nothing takes it any more, and it is kept to be looked at.
        deadLetters.push({ ...event, view: carried?.id ?? 0 });
        bytes += event.body.length + (event.oldBody?.length ?? 0);
        if (deadLetters.length >= chunk || bytes >= chunkBytes) await send();
      }
      await this.turn();
    }
    await send();
  }

  private async turn(): Promise<void> {
    await nextTurn();
    this.signal?.throwIfAborted();
  }
}

/** Bodies that are read at once. */
const together = 64;
