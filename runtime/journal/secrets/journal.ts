import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { type Fence, type FenceOptions, isOutrun, isSame } from "../../lease/lease-record.ts";
import { emptyEntries, type JournalEntries, type KnownWrite } from "../batch.ts";
import { notThere, type PreviousEnd, type SharedJournal } from "../journal.ts";
import { MemoryDisk, MemoryJournal } from "../memory/journal.ts";
import { Changes, encodeEntry } from "../memory/log-entry.ts";
import { frame, pack } from "../memory/packing.ts";
import { dataOf, digest, type Head, readDisk, readHead, type Snapshot } from "./head.ts";
import { checkpointSecrets } from "./names.ts";
import { type Secret, Secrets } from "./secrets.ts";
import { WriteBehind } from "./write-behind.ts";

/** Bytes in one slot. A Secret may hold 1 MiB. */
const slotBytes = 900 * 1024;
/** Maximum size of the log, which is sent with every write. A longer log is replaced by a snapshot. */
const logBytes = 512 * 1024;
/** Maximum bytes of known objects' bodies in memory. They are not written. */
const bodyBytes = 64 * 1024 * 1024;
/** Limit of waiting events: together with the dead letters, half of the room, even if nothing compresses. */
const spillBytes = 1024 * 1024;
/** Limit of all dead letters, compressed. A snapshot may take three slots. */
const letterBytes = 512 * 1024;
/**
 * Entries are refused once writes have failed for this long, in milliseconds, because everything since would be delivered again.
 */
const patienceMs = 15_000;
/** Number of attempts at the last write of a clean end. */
const closeTries = 3;

export interface SecretsJournalOptions extends FenceOptions {
  readonly transport: KubeTransport;
  /** The namespace of the Secrets. */
  readonly namespace: string;
  /** Prefix of the Secrets' names, `<account>-checkpoint-<n>`. */
  readonly account: string;
  /** True if the Secrets must hold checkpoints. Secrets without any are then left unchanged and not opened. Default false. */
  readonly isThere?: boolean;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  /** Called once when another runtime has taken the store over. */
  readonly onLost: (error: WatchfireError) => void;
}

/**
 * The store in existing Secrets, for replicas on several nodes. Its state is in memory. Every five seconds, changes are appended
 * to the log in the first Secret, by compare-and-swap under the fence, or everything is written as a snapshot into Secrets that
 * the head does not name yet. So the head always refers to one consistent moment. An unclean end loses later commits, as a power
 * loss does.
 */
export class SecretsJournal extends MemoryJournal implements SharedJournal {
  override readonly capabilities = { queues: false, bodies: false, packed: true };
  override readonly room = { spill: spillBytes, letters: letterBytes };
  private moved: string | undefined;
  private readonly options: SecretsJournalOptions;
  private readonly secrets: Secrets;
  private readonly names: readonly string[];
  private readonly behind: WriteBehind;
  private readonly slots = new Map<number, Secret>();
  private headSecret: Secret;
  private head: Head;
  /**
   * True if the outcome of a write of the head is unknown. It may still arrive, and then other slots are valid than this process
   * assumes.
   */
  private unanswered = false;
  private changes = new Changes();
  private bodies = 0;
  private fault: WatchfireError | undefined;
  private full: WatchfireError | undefined;
  private readonly overflow = Promise.withResolvers<WatchfireError>();

  private constructor(options: SecretsJournalOptions, disk: MemoryDisk, head: Head, secret: Secret, moved?: string) {
    super(disk);
    this.options = options;
    this.secrets = new Secrets(options.transport, options.namespace);
    this.names = checkpointSecrets(options.account);
    this.head = head;
    this.headSecret = secret;
    this.moved = moved;
    this.behind = new WriteBehind(
      options.clock,
      () => this.write("running"),
      (error) => this.failed(error),
    );
  }

  /**
   * Reads the state, and writes this fence into the head, so that the previous owner can no longer write.
   * @throws WatchfireError of the checkpoint section; what the transport throws
   */
  static async open(options: SecretsJournalOptions): Promise<SecretsJournal> {
    const secrets = new Secrets(options.transport, options.namespace);
    const names = checkpointSecrets(options.account);
    const { isThere, raise, holds = () => true } = options;
    let { fence } = options;
    for (let tries = 0; ; tries++) {
      const name = names[0] ?? "";
      const secret = await secrets.read(name);
      const found = readHead(secret, name);
      if (!found && isThere) throw notThere("the Secrets hold no checkpoints");
      if (isOutrun(fence, found?.fence)) {
        const raised = await raise?.(found.fence.number);
        if (!raised) throw fenced(found.fence);
        fence = raised;
        continue;
      }
      const disk = found
        ? await readDisk(found, name, async (slot) => {
            const { data } = await secrets.read(names[slot] ?? "");
            return data.get("data") ?? Buffer.alloc(0);
          })
        : new MemoryDisk();
      const previousEnd: PreviousEnd = !found ? "new" : found.end === "running" ? "power-loss" : "clean";
      const head: Head = { snapshot: undefined, log: Buffer.alloc(0), ...found, fence, end: "running" };
      const moved = found?.end.startsWith("moved:") ? found.end.slice("moved:".length) : undefined;
      if (!holds()) throw fenced(found?.fence);
      const written = await secrets.write(
        name,
        secret,
        dataOf(moved === undefined ? head : { ...head, end: found?.end ?? "clean" }),
      );
      if (written !== "conflict") {
        disk.end = previousEnd;
        return new SecretsJournal({ ...options, fence }, disk, head, written, moved);
      }
      if (tries > 5)
        throw new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", { what: `the Secret ${name} keeps changing` });
    }
  }

  get movedTo(): string | undefined {
    return this.moved;
  }

  /** True if the Secrets hold nothing but the mark of an earlier owner. */
  get isBlank(): boolean {
    const { snapshot, log } = this.head;
    return this.moved === undefined && !snapshot && log.length === 0;
  }

  /** Clears the memory. The Secrets keep their contents until the next write. */
  async clear(end: PreviousEnd): Promise<void> {
    this.state.clear();
    this.previousEnd = end;
    this.moved = undefined;
    this.changes = new Changes();
    this.head = { ...this.head, snapshot: undefined, log: Buffer.alloc(0) };
  }

  async moveTo(place: string): Promise<void> {
    await this.behind.stop();
    await this.clear("new");
    await this.put({ ...this.head, end: `moved:${place}` });
  }

  override async append(given: JournalEntries): Promise<void> {
    const fault = this.refusal(given);
    if (fault) throw fault;
    this.take(given);
    if (this.full) void this.sync().catch(() => undefined);
  }

  /** Records and applies the entries synchronously, so that no write happens in between. */
  private take(given: JournalEntries): void {
    const entries = this.whole(given);
    for (const view of entries.goneViews)
      for (const { body } of this.state.views.get(view)?.known.values() ?? []) this.bodies -= body?.length ?? 0;
    this.changes.note(entries);
    this.state.apply({ ...entries, known: entries.known.map((write) => this.withinBodies(write)) });
    this.behind.touch();
  }

  override sync(): Promise<void> {
    return this.behind.sync();
  }

  async syncWhole(): Promise<void> {
    const overflow = await Promise.race([this.sync(), this.overflow.promise]);
    if (overflow) throw overflow;
  }

  override async close(clean: boolean): Promise<void> {
    await this.behind.stop();
    if (!clean || this.moved !== undefined) return;
    for (let tries = 1; ; tries++) {
      try {
        return await this.write("clean");
      } catch (error) {
        if (tries === closeTries || this.failed(error) === "never") throw asFault(error);
      }
    }
  }

  /** Returns why entries are refused, if they are. Entries that only free room are always accepted. */
  private refusal({ known, journal, spill, deadLetters, state }: JournalEntries): WatchfireError | undefined {
    if (this.fault) return this.fault;
    // Cursors take next to no room, and are written along with deletions.
    const rows = journal.length + spill.length + deadLetters.length;
    const adds = rows > 0 || known.some(({ state }) => state) || state.some(({ value }) => value !== undefined);
    if (this.full && adds) return this.full;
    if (this.behind.failingMs <= patienceMs) return undefined;
    return new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", {
      what: `the Secrets of ${this.options.account} could not be written for ${Math.round(this.behind.failingMs / 1000)} s`,
      hint: "look at the log for why; handlers start again once a write succeeds",
    });
  }

  /** Removes the body from a write once the limit of bodies is reached. */
  private withinBodies(write: KnownWrite): KnownWrite {
    const { view, key, state } = write;
    if (state?.body === "older") return write;
    this.bodies -= this.state.views.get(view)?.known.get(key)?.body?.length ?? 0;
    if (!state?.body) return write;
    if (this.bodies + state.body.length > bodyBytes) return { view, key, state: { ...state, body: undefined } };
    this.bodies += state.body.length;
    return write;
  }

  private async write(end: "running" | "clean"): Promise<void> {
    const { changes } = this;
    this.changes = new Changes();
    try {
      const appended = await frame(encodeEntry(this.state, changes));
      const { log } = this.head;
      const short = log.length + appended.length <= logBytes;
      const next = short
        ? { ...this.head, log: Buffer.concat([log, appended]) }
        : { ...this.head, log: Buffer.alloc(0), snapshot: await this.writeSnapshot() };
      await this.put({ ...next, end });
      this.full = undefined;
    } catch (error) {
      this.changes.add(changes);
      throw error;
    }
  }

  /** Writes everything into slots that the head does not name. */
  private async writeSnapshot(): Promise<Snapshot> {
    // Settles the unanswered write: this one either replaces the head that we know, or conflicts with another head.
    if (this.unanswered) await this.put(this.head);
    const slotsOf = (packed: Buffer) => Math.ceil(packed.length / slotBytes);
    // Half of the slots hold the previous snapshot.
    const most = Math.floor((this.names.length - 1) / 2);
    let bytes = await pack(encodeEntry(this.state, Changes.all(this.state)));
    // Known objects of removed functions are kept only while there is room for them.
    const retired = [...this.state.views.values()].filter(({ retiredAt }) => retiredAt !== undefined);
    if (slotsOf(bytes) > most && retired.length > 0) {
      const live = [...this.state.views.values()].filter(({ retiredAt }) => retiredAt === undefined);
      const state = this.state.withoutViews(live);
      this.take({ ...emptyEntries, goneViews: retired.map(({ id }) => id), state });
      bytes = await pack(encodeEntry(this.state, Changes.all(this.state)));
    }
    const used = this.head.snapshot?.slots ?? [];
    const free = [...this.names.keys()].slice(1).filter((slot) => !used.includes(slot));
    const count = slotsOf(bytes);
    if (count > most) {
      throw new WatchfireError("WF_CHECKPOINT_FULL", {
        what: `the checkpoints need ${count} Secrets of ${slotBytes / 1024} KiB, and ${most} can be used`,
      });
    }
    const slots = free.slice(0, count);
    for (const [index, slot] of slots.entries()) {
      await this.writeSlot(slot, bytes.subarray(index * slotBytes, (index + 1) * slotBytes));
    }
    return { slots, sha256: digest(bytes) };
  }

  /**
   * Writes a slot under its last known resourceVersion. A previous owner that was stopped in the middle of a snapshot may
   * continue at any time, but cannot overwrite this slot, because it only writes slots as it read or wrote them while the head
   * was its own.
   */
  private async writeSlot(slot: number, data: Buffer): Promise<void> {
    const name = this.names[slot] ?? "";
    for (;;) {
      let known = this.slots.get(slot);
      if (!known) {
        known = await this.secrets.read(name);
        await this.assertOwn();
      }
      const written = await this.secrets.write(name, known, { data });
      if (written !== "conflict") {
        this.slots.set(slot, { ...written, data: new Map() });
        return;
      }
      this.slots.delete(slot);
    }
  }

  private async assertOwn(): Promise<Head> {
    const name = this.names[0] ?? "";
    const secret = await this.secrets.read(name);
    const head = readHead(secret, name);
    if (!head || !isSame(this.options.fence, head.fence)) throw fenced(head?.fence);
    this.headSecret = secret;
    return head;
  }

  private async put(head: Head): Promise<void> {
    const name = this.names[0] ?? "";
    this.unanswered = true;
    const written = await this.secrets.write(name, this.headSecret, dataOf(head));
    if (written === "conflict") {
      // The Secret was labelled, or an answer was lost: the head is still ours, and the next write builds on it.
      this.head = await this.assertOwn();
      this.unanswered = false;
      throw new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", { what: `the Secret ${name} was changed meanwhile` });
    }
    this.unanswered = false;
    this.headSecret = { ...written, data: new Map() };
    this.head = head;
  }

  private failed(error: unknown): "again" | "never" {
    const fault = asFault(error);
    if (fault.code === "WF_CHECKPOINT_FENCED") {
      this.fault = fault;
      this.options.onLost(fault);
      return "never";
    }
    if (fault.code === "WF_CHECKPOINT_FULL") {
      this.full = fault;
      this.overflow.resolve(fault);
    }
    this.options.log.warn({ error: fault.message }, "checkpoint not written");
    return "again";
  }
}

const fenced = (by: Fence | undefined): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_FENCED", {
    what: by ? "a replica that held the Lease later has opened it" : "somebody has emptied it",
    actual: by?.number,
  });

const asFault = (error: unknown): WatchfireError =>
  error instanceof WatchfireError
    ? error
    : new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", {
        what: `the Secrets could not be written: ${error instanceof Error ? error.message : String(error)}`,
        hint: "it is tried again; handlers continue for 15 s",
        cause: error,
      });
