import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type Cursor,
  emptyBatch,
  type KnownIdentity,
  type KnownWrite,
  runId,
  runSequence,
  type StartedEvent,
} from "../journal/batch.ts";
import type { Checkpoint, StoredView } from "../journal/checkpoint.ts";
import type { Queues } from "../journal/journal.ts";
import { type FunctionRows, type Move, precedes, shareOf, wholeMove } from "./layout.ts";

/** Rows of one commit: few enough to fit in memory, and enough that the cost of commits does not matter. */
const chunk = 1_000;
const chunkBytes = 16 * 1024 * 1024;
/** Maximum number of concurrent reads of bodies, because a journal on NATS reads each separately. */
const together = 64;

/**
 * Copies the rows of one journal that belong into another: cursors, known objects, begun attempts, waiting events, dead letters
 * and functions' own state. Letters get new numbers in the same order. Known objects of removed functions are not copied. The target may have rows
 * of the same functions from other journals; copied waiting events are ordered after those. Yields to the event loop between
 * chunks, because the Lease must be renewed meanwhile.
 * @param move which rows belong into the target; default: all
 * @throws the signal's reason, with some of the rows copied
 */
export async function copyJournal(
  from: Checkpoint,
  to: Checkpoint,
  move: Move = wholeMove,
  signal?: AbortSignal,
): Promise<void> {
  await new JournalCopy(from, to, move, signal).run();
}

/** A view that is copied. */
interface CopiedView {
  readonly view: StoredView;
  readonly share: FunctionRows;
  /** Its number in the target. */
  readonly id: number;
}

class JournalCopy {
  private readonly from: Checkpoint;
  private readonly to: Checkpoint;
  private readonly move: Move;
  private readonly signal: AbortSignal | undefined;
  /** By the view's number in the source. */
  private readonly views = new Map<number, CopiedView>();
  /** By function: the last sequence in the target, which is added to the sequence of each copied event. */
  private readonly behind = new Map<string, number>();

  constructor(from: Checkpoint, to: Checkpoint, move: Move, signal: AbortSignal | undefined) {
    this.from = from;
    this.to = to;
    this.move = move;
    this.signal = signal;
  }

  async run(): Promise<void> {
    const { from, to, move } = this;
    const cluster = await from.cluster();
    if (cluster !== undefined) await to.setCluster(cluster);
    const paused = await to.paused();
    for (const [name, since] of await from.paused())
      if (shareOf(move, name)) await to.setPaused(name, Math.min(since, paused.get(name) ?? since));
    for (const view of await from.views()) await this.copyView(view);
    for (const name of this.functions) await this.copyState(name);
    for (const name of this.functions) {
      let last = 0;
      for (const { sequence } of await to.spillHeaders(name)) last = Math.max(last, sequence);
      this.behind.set(name, last);
    }
    await this.copyBegun();
    for (const name of this.functions) await this.copySpill(name);
    await this.copyLetters();
  }

  private get functions(): Set<string> {
    return new Set([...this.views.values()].map(({ view }) => view.function));
  }

  private async copyView(view: StoredView): Promise<void> {
    const { from, to } = this;
    const share = shareOf(this.move, view.function);
    if (!share) return;
    const there = (await this.sameThere(view)) ?? (await to.openView(view.function, view.trigger, view.resource));
    const { id } = there;
    const { trigger, identity, manifest } = view;
    // Event ids continue with the source's identity.
    if (there.manifest === undefined) await to.recordViews([{ id, trigger, identity, manifest }]);
    this.views.set(view.id, { view, share, id });
    const found = new Map<string, KnownIdentity>();
    await to.known(id, (key, known) => found.set(key, known));
    const objects: [string, KnownIdentity][] = [];
    await from.known(view.id, (key, known) => {
      const other = found.get(key);
      if (share.has(view, key, known.keys) && !(other && precedes(other, known))) objects.push([key, known]);
    });
    await this.copyObjects(view.id, id, objects);
    // Cursors are written after the objects that they depend on.
    const cursors = view.cursors.flatMap((cursor): Cursor[] => {
      const other = there.cursors.find(({ namespace }) => namespace === cursor.namespace);
      const become = share.cursor(view, cursor, other);
      return become ? [{ ...become, view: id }] : [];
    });
    await to.commit({ ...emptyBatch, cursors });
  }

  /** Returns the target's view of the same trigger, which may have the trigger's name before a rename. */
  private async sameThere({ function: name, resource, identity, manifest }: StoredView) {
    if (manifest === undefined) return undefined;
    const isSame = (other: StoredView) =>
      other.resource === resource && other.identity === identity && other.manifest !== undefined;
    return (await this.to.views(name)).find(isSame);
  }

  /** Copies a function's own state. Its parts have no share in it, so each target receives all; the last source of a key wins. */
  private async copyState(name: string): Promise<void> {
    const state = [...this.from.ownState(name)].map(([key, value]) => ({ function: name, key, value }));
    if (state.length > 0) await this.to.commit({ ...emptyBatch, state });
  }

  private async copyObjects(from: number, view: number, objects: readonly [string, KnownIdentity][]): Promise<void> {
    for (let at = 0; at < objects.length; ) {
      const known: KnownWrite[] = [];
      const older: KnownWrite[] = [];
      for (let bytes = 0; at < objects.length && known.length < chunk && bytes < chunkBytes; at += together) {
        const some = objects.slice(at, at + together);
        const bodies = await Promise.all(some.map(([key]) => this.from.body(from, key)));
        for (const [index, [key, identity]] of some.entries()) {
          const body = bodies[index];
          known.push({ view, key, state: { ...identity, body: body?.bytes } });
          if (body?.isOlder) older.push({ view, key, state: { ...identity, body: "older" } });
          bytes += body?.bytes.length ?? 0;
        }
      }
      await this.to.commit({ ...emptyBatch, known });
      if (older.length > 0) await this.to.commit({ ...emptyBatch, known: older });
      await this.turn();
    }
  }

  private async copyBegun(): Promise<void> {
    const { from, to } = this;
    let number = Math.max(0, ...(await to.begun()).map(({ id }) => id));
    const begun = (event: StartedEvent): StartedEvent[] => {
      const copied = this.owner(event.view, event.key);
      if (!copied) return [];
      const sequence = runSequence(event.id);
      const id = sequence === undefined ? event.id : runId(this.sequence(copied, sequence));
      return [{ ...event, view: copied.id, id }];
    };
    const journal = (await from.begun()).flatMap(({ started }) => {
      const ours = started.flatMap(begun);
      return ours.length === 0 ? [] : [{ id: ++number, started: ours }];
    });
    await to.commit({ ...emptyBatch, journal });
  }

  private async copySpill(name: string): Promise<void> {
    for await (const rows of this.pages("spill", name, ({ sequence }) => sequence)) {
      const spill = rows.flatMap((event) => {
        const copied = this.owner(event.view, `${event.namespace}/${event.name}`);
        if (!copied) return [];
        const sequence = this.sequence(copied, event.sequence);
        return [{ ...event, view: copied.id, sequence, ...(event.kind === "key" && { id: runId(sequence) }) }];
      });
      await this.to.commit({ ...emptyBatch, spill });
    }
  }

  private async copyLetters(): Promise<void> {
    for await (const rows of this.pages("letters", undefined, ({ letter }) => Number(letter))) {
      const deadLetters = rows.flatMap(({ letter: _, bodyDropped: __, ...event }) => {
        const { function: name, view, namespace, name: object, trigger } = event;
        const copied = this.views.get(view);
        const of = copied?.view ?? { function: name, trigger, resource: "" };
        if (!shareOf(this.move, name)?.has(of, `${namespace}/${object}`, undefined)) return [];
        // A letter of a deleted trigger cannot be replayed. It is kept so that it can be shown.
        return [{ ...event, view: copied?.id ?? 0 }];
      });
      await this.to.commit({ ...emptyBatch, deadLetters });
    }
  }

  /** Returns the view of a key's rows, if they belong into the target. */
  private owner(view: number, key: string): CopiedView | undefined {
    const copied = this.views.get(view);
    return copied?.share.has(copied.view, key, undefined) ? copied : undefined;
  }

  private sequence({ view }: CopiedView, sequence: number): number {
    return sequence + (this.behind.get(view.function) ?? 0);
  }

  private async *pages<Q extends keyof Queues>(
    queue: Q,
    name: string | undefined,
    numberOf: (row: Queues[Q]["whole"]) => number,
  ): AsyncGenerator<readonly Queues[Q]["whole"][], void> {
    for (let after = Number.NEGATIVE_INFINITY; ; ) {
      const rows = await this.from.journal.page(queue, { function: name, after, limit: chunk }, chunkBytes);
      const last = rows.at(-1);
      if (!last) return;
      after = numberOf(last);
      yield rows;
      await this.turn();
    }
  }

  private async turn(): Promise<void> {
    await nextTurn();
    this.signal?.throwIfAborted();
  }
}
