import { pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { JournalEntries, KnownBody } from "../batch.ts";
import type { PreviousEnd, SharedJournal } from "../journal.ts";
import { MemoryJournal } from "../memory/journal.ts";
import { bodyElsewhere, Changes, encodeEntry } from "../memory/log-entry.ts";
import { JetstreamBodies, stateOf, type TaggedBody } from "./bodies.ts";
import type { NatsUser } from "./connection.ts";
import { natsFault } from "./fault.ts";
import type { JetstreamLog, Note } from "./log.ts";
import { markOf, type SlotOptions, type TakenSlot, takeSlot } from "./slot.ts";
import { writeSnapshot } from "./snapshot.ts";
import { WriteThrough } from "./write-through.ts";

const mebibyte = 1024 * 1024;
/** Default limit, in bytes, of waiting events and dead letters together, and of the cache of bodies. */
const defaultRoom = 64 * mebibyte;
/** A snapshot replaces a log larger than this and larger than twice the last snapshot, or a log of more messages than this. */
const logBytes = 4 * mebibyte;
const logMessages = 4096;
/** How long a commit waits for its acknowledgement before it fails, in milliseconds. The election of a new leader takes less. */
const patienceMs = 3_000;
/** Interval at which the log's progress is written to the witness, in milliseconds. */
const witnessMs = 30_000;
/** Number of tries to record a loss, and the milliseconds between two of them. */
const recordTries = 10;
const againMs = 500;
/** How long a clean end waits to be acknowledged, in milliseconds. */
const closeMs = 5_000;

export interface JetstreamJournalOptions extends SlotOptions {
  readonly log: { warn(fields: object, message: string): void; error(fields: object, message: string): void };
  /** Called once when another replica has taken the slot, or NATS has lost acknowledged messages. */
  readonly onLost: (error: WatchfireError) => void;
  /** Limit of waiting events and dead letters, which are kept in memory, in bytes. Default 64 MiB. */
  readonly room?: number;
  /** Limit of the cache of bodies, in bytes. Default 64 MiB. */
  readonly cacheBytes?: number;
  /** Called when the store is closed. Default: nothing, because the connection belongs to the caller. */
  readonly onClosed?: () => Promise<void>;
}

/**
 * The store of one slot on NATS JetStream. Everything but the last bodies is in memory. A commit is one message, which is
 * acknowledged before the commit resolves. The server refuses it if another owner has written into the slot.
 */
export class JetstreamJournal extends MemoryJournal implements SharedJournal {
  override readonly capabilities = { queues: false, bodies: true, packed: false };
  override readonly room: SharedJournal["room"];
  private readonly options: JetstreamJournalOptions;
  private readonly bodies: JetstreamBodies;
  private readonly log: JetstreamLog;
  private readonly writer = new WriteThrough(() => this.write());
  private note: Note;
  private moved: string | undefined;
  private sizes: { snapshot: number; log: number; messages: number };
  /** Objects that hold entries, and the sequence of the last message that names one of them. */
  private objects: { readonly name: string; readonly sequence: number }[];
  /** Objects of snapshots: the valid one, and older ones that could not be deleted. */
  private readonly snapshots: Set<string>;
  /** Contents of the next message, and the bodies that are written or deleted with it. */
  private dirty = false;
  private changes = new Changes();
  private newBodies = new Map<string, TaggedBody>();
  private oldBodies = new Set<string>();
  private oldViews: number[] = [];
  /** Entries in memory whose write was not acknowledged in time. */
  private readonly taken = new WeakSet<JournalEntries>();
  private snapshotting: Promise<void> | undefined;
  private witnessedAt: number;
  private readonly user: NatsUser = {
    left: () => {
      this.leftAt ??= this.options.clock.monotonic();
    },
    returned: () => {
      this.leftAt = undefined;
      return this.verify().catch(() => undefined);
    },
  };
  /** Since when there is no connection. A slot that commits nothing would not notice otherwise. */
  private leftAt: number | undefined;
  private failingSince: number | undefined;
  private failure: WatchfireError | undefined;
  private fault: WatchfireError | undefined;
  /** Resolves once a loss is recorded where every slot that is opened later finds it. */
  private recorded: Promise<void> = Promise.resolve();
  private closed = false;

  private constructor(options: JetstreamJournalOptions, bodies: JetstreamBodies, taken: TakenSlot) {
    const { room = defaultRoom } = options;
    super(taken.disk);
    this.options = options;
    this.room = { spill: room / 2, letters: room / 2 };
    this.bodies = bodies;
    this.log = taken.log;
    this.note = taken.note;
    this.moved = taken.moved;
    this.sizes = { ...taken.sizes };
    this.objects = taken.objects.map((name) => ({ name, sequence: taken.log.sequence }));
    this.snapshots = new Set(taken.note.snapshot?.object === undefined ? [] : [taken.note.snapshot.object]);
    this.witnessedAt = options.clock.monotonic();
  }

  /**
   * Takes the slot, so that the previous owner can no longer write. Creates missing streams.
   * @throws WatchfireError of the checkpoint section
   */
  static async open(options: JetstreamJournalOptions): Promise<JetstreamJournal> {
    const { nats, slot, clock, log, cacheBytes = defaultRoom } = options;
    const bodies = new JetstreamBodies(nats, clock, slot, cacheBytes);
    try {
      const listed = (await nats.objects.list()).map(({ name }) => name);
      bodies.learn(listed);
      const taken = await takeSlot(options, bodies);
      if (taken.loss) log.error({ slot, error: taken.loss.message }, "checkpoints were lost");
      const store = new JetstreamJournal(options, bodies, taken);
      await store.tidy(listed);
      nats.users.add(store.user);
      return store;
    } catch (error) {
      const fault = natsFault(error, "checkpoints could not be read");
      // A body that is still to be deleted could be one that the slot's next owner writes.
      bodies.end(fault);
      throw fault;
    }
  }

  get movedTo(): string | undefined {
    return this.moved;
  }

  get isBlank(): boolean {
    return this.moved === undefined && this.state.views.size + this.state.letters.size === 0;
  }

  /** Why writes are not acknowledged at present. */
  get trouble(): WatchfireError | undefined {
    return this.fault ?? this.failure ?? this.absence;
  }

  private get absence(): WatchfireError | undefined {
    const { leftAt, options } = this;
    if (leftAt === undefined || options.clock.monotonic() - leftAt < patienceMs) return undefined;
    return new WatchfireError("WF_CHECKPOINT_NATS_AWAY", { what: "the connection is lost" });
  }

  async clear(end: PreviousEnd): Promise<void> {
    await this.empty(end, undefined);
  }

  async moveTo(place: string): Promise<void> {
    await this.empty("new", place);
  }

  /** Writes one message that records why the slot is empty. Without it, an empty slot would look like a complete state. */
  private async empty(end: PreviousEnd, moved: string | undefined): Promise<void> {
    const { options, bodies } = this;
    const { nats } = options;
    this.state.clear();
    this.previousEnd = end;
    this.moved = moved;
    this.changes = new Changes();
    this.note = {
      ...this.note,
      end: moved === undefined ? "running" : `moved:${moved}`,
      inDoubt: end === "power-loss",
      snapshot: { sequence: this.log.sequence },
    };
    await this.changed();
    await bodies.clear();
    await this.log.trim(this.note.snapshot?.sequence ?? 0);
    this.sizes = { snapshot: 0, log: 0, messages: 0 };
    this.objects = [];
    this.snapshots.clear();
    await this.tidy((await nats.objects.list()).map(({ name }) => name));
  }

  override async body(view: number, key: string): Promise<KnownBody | undefined> {
    const known = this.state.views.get(view)?.known.get(key);
    if (!known?.body) return undefined;
    const found = await this.bodies.get(this.bodies.subject(view, key));
    const isOlder = known.bodyIsOlder === true || found?.state !== stateOf(known);
    return found && { bytes: found.bytes, isOlder };
  }

  override async append(entries: JournalEntries): Promise<void> {
    if (this.fault) await this.refuse(this.fault);
    if (!this.taken.has(entries)) this.take(entries);
    this.taken.add(entries);
    await this.changed();
  }

  override async sync(): Promise<void> {
    if (this.dirty) await this.changed();
    await this.writer.idle();
    if (this.fault) await this.refuse(this.fault);
  }

  syncWhole(): Promise<void> {
    return this.sync();
  }

  override async close(clean: boolean): Promise<void> {
    const { clock, onClosed } = this.options;
    const ended = closedError();
    const end = async () => {
      await this.writer.idle();
      await this.snapshotting;
      await this.bodies.swept();
      this.closed = true;
      if (!this.fault && this.moved === undefined)
        await this.log.append({ ...this.note, end: "clean", inDoubt: false }, Buffer.alloc(0), () => {});
      await this.witness();
    };
    const late = new AbortController();
    try {
      if (clean) await Promise.race([end(), pause(clock, closeMs, late.signal).then(() => Promise.reject(ended))]);
    } finally {
      late.abort();
      this.closed = true;
      this.writer.letGo(ended);
      this.options.nats.users.delete(this.user);
      this.log.end(ended);
      this.bodies.end(ended);
      await onClosed?.();
    }
  }

  /** Applies entries in memory, and adds them to the next message. */
  private take(given: JournalEntries): void {
    const entries = this.whole(given);
    const { views } = this.state;
    const hasBody = ({ view, key }: { readonly view: number; readonly key: string }) =>
      views.get(view)?.known.get(key)?.body !== undefined;
    const had = entries.known.filter(hasBody);
    this.oldViews.push(...entries.goneViews.filter((id) => views.has(id)));
    this.changes.note(entries);
    for (const { view, key } of entries.bodies) this.changes.known.add(view, key);
    const known = entries.known.map((write) =>
      write.state?.body instanceof Uint8Array ? { ...write, state: { ...write.state, body: bodyElsewhere } } : write,
    );
    this.state.apply({
      ...entries,
      known,
      bodies: entries.bodies.map((row) => ({ ...row, body: bodyElsewhere })),
    });
    for (const row of had) if (!hasBody(row)) this.forgetBody(row.view, row.key);
    for (const { view, key, state } of entries.known)
      if (state?.body instanceof Uint8Array) this.takeBody(view, key, state.body);
    for (const { view, key, body } of entries.bodies) this.takeBody(view, key, body);
  }

  private takeBody(view: number, key: string, bytes: Buffer): void {
    const known = this.state.views.get(view)?.known.get(key);
    if (!known) return;
    const subject = this.bodies.subject(view, key);
    // Copied, because it may be a small part of a large chunk read from a socket.
    const body = { bytes: Buffer.from(bytes), state: stateOf(known) };
    this.oldBodies.delete(subject);
    this.newBodies.set(subject, body);
    this.bodies.remember(subject, body);
  }

  private forgetBody(view: number, key: string): void {
    const subject = this.bodies.subject(view, key);
    this.newBodies.delete(subject);
    this.oldBodies.add(subject);
    this.bodies.forget(subject);
  }

  /** The process may end once the loss is reported, so it is recorded before. @throws `fault` */
  private async refuse(fault: WatchfireError): Promise<never> {
    await this.recorded;
    throw fault;
  }

  /** Resolves once all changes are acknowledged. */
  private async changed(): Promise<void> {
    if (this.fault) await this.refuse(this.fault);
    this.dirty = true;
    await this.writer.touch();
  }

  private async write(): Promise<void> {
    if (!this.dirty) return;
    if (this.closed) throw closedError();
    this.dirty = false;
    // The note as well: a snapshot that is named meanwhile has rows that this entry lacks.
    const { changes, newBodies, oldBodies, oldViews, note } = this;
    this.changes = new Changes();
    this.newBodies = new Map();
    this.oldBodies = new Set();
    this.oldViews = [];
    const entry = encodeEntry(this.state, changes, true);
    const failed = (error: WatchfireError) => this.failed(error);
    try {
      // Bodies are stored before the rows that refer to them.
      await this.bodies.put(newBodies, failed);
      const { bytes, object } = await this.log.append(note, entry, failed);
      this.failingSince = undefined;
      this.failure = undefined;
      this.sizes.log += bytes;
      this.sizes.messages++;
      if (object !== undefined) this.objects.push({ name: object, sequence: this.log.sequence });
    } catch (error) {
      await this.lose(error);
      throw error;
    }
    this.bodies.drop([...oldBodies].filter((subject) => !this.newBodies.has(subject)));
    for (const view of oldViews) this.bodies.dropView(view);
    if (this.options.clock.monotonic() - this.witnessedAt > witnessMs) void this.witness();
    const { log, messages, snapshot } = this.sizes;
    if (log > Math.max(logBytes, 2 * snapshot) || messages > logMessages) void this.snapshot();
  }

  /** Called when a write was not acknowledged and is retried. */
  private failed(error: WatchfireError): void {
    const { clock, log } = this.options;
    if (this.failingSince === undefined) log.warn({ error: error.message }, "commit not acknowledged");
    this.failingSince ??= clock.monotonic();
    if (clock.monotonic() - this.failingSince < patienceMs) return;
    this.failure = error;
    this.writer.letGo(error);
  }

  private async lose(error: unknown): Promise<void> {
    if (this.closed || this.fault || !(error instanceof WatchfireError)) return;
    this.fault = error;
    if (error.code === "WF_CHECKPOINT_REWOUND") this.recorded = this.recordLoss();
    await this.recorded;
    this.options.onLost(error);
  }

  /**
   * Records the loss in the witness and in the streams. Otherwise a remaining part of a slot that reaches beyond its witness
   * would pass for the complete state, here and in slots that no replica has open. Never rejects.
   */
  private async recordLoss(): Promise<void> {
    const { nats, clock, log } = this.options;
    await this.witness();
    for (let tries = 1; !this.closed; tries++) {
      try {
        return await nats.rewound(this.note.streams);
      } catch (error) {
        if (tries < recordTries) await pause(clock, againMs);
        else return log.warn({ error: String(error) }, "loss not recorded in the stream");
      }
    }
  }

  /** Checks for lost messages. A slot that commits nothing would not notice otherwise. */
  private async verify(): Promise<void> {
    const loss = await this.log.loss();
    if (loss) await this.lose(loss);
  }

  /**
   * Writes a snapshot while commits continue, and then deletes the log that it contains. Also called internally when the log is
   * long.
   */
  snapshot(): Promise<void> {
    this.snapshotting ??= this.writeSnapshot()
      .catch((error: unknown) => {
        if (!this.closed) this.options.log.warn({ error: String(error) }, "snapshot not written");
        // Avoids a retry with every commit from now on.
        Object.assign(this.sizes, { log: 0, messages: 0 });
      })
      .finally(() => {
        this.snapshotting = undefined;
      });
    return this.snapshotting;
  }

  private async writeSnapshot(): Promise<void> {
    const { nats, slot } = this.options;
    const { sequence } = this.log;
    const object = `${slot}/snapshot/${sequence}-${crypto.randomUUID()}`;
    Object.assign(this.sizes, { log: 0, messages: 0 });
    this.snapshots.add(object);
    this.sizes.snapshot = await writeSnapshot(nats, object, this.state);
    // The log lists the bodies to delete, in case this process ends before.
    await this.bodies.swept();
    this.note = { ...this.note, snapshot: { object, sequence } };
    await this.changed();
    await this.log.trim(sequence);
    for (const before of [...this.snapshots].filter((each) => each !== object)) {
      await nats.deleteObject(before);
      this.snapshots.delete(before);
    }
    for (const { name } of this.objects.filter((each) => each.sequence <= sequence)) await nats.deleteObject(name);
    this.objects = this.objects.filter((each) => each.sequence > sequence);
  }

  /** Deletes unreferenced objects of the slot, left by a process that was killed. */
  private async tidy(listed: readonly string[]): Promise<void> {
    const { nats, slot } = this.options;
    const named = new Set([this.note.snapshot?.object, ...this.objects.map(({ name }) => name)]);
    const ours = [`${slot}/snapshot/`, `${slot}/entry/`];
    for (const name of listed) {
      if (!named.has(name) && ours.some((prefix) => name.startsWith(prefix))) await nats.deleteObject(name);
    }
  }

  private async witness(): Promise<void> {
    this.witnessedAt = this.options.clock.monotonic();
    await this.options.witness?.write(markOf(this.log.sequence, this.note.streams)).catch(() => undefined);
  }
}

const closedError = (): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_NATS_AWAY", { what: "the store was closed before it answered" });
