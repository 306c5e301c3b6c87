import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { Fence } from "../../lease/elector.ts";
import { emptyEntries, type JournalEntries, type KnownWrite } from "../batch.ts";
import { notThere, type PreviousEnd, type SharedJournal } from "../journal.ts";
import { MemoryDisk, MemoryJournal } from "../memory/journal.ts";
import { Changes, encodeEntry } from "../memory/log-entry.ts";
import { frame, pack } from "../memory/packing.ts";
import { dataOf, digest, type Head, readDisk, readHead, type Snapshot } from "./head.ts";
import { checkpointSecrets } from "./names.ts";
import { type Secret, Secrets } from "./secrets.ts";
import { WriteBehind } from "./write-behind.ts";

/** Of 1 MiB that a Secret may hold. */
const slotBytes = 900 * 1024;
/** A longer log becomes a snapshot: the whole log is sent with every write. */
const logBytes = 512 * 1024;
/** Bodies of known objects that are kept in memory; they are written nowhere. */
const bodyBytes = 64 * 1024 * 1024;
/** Events on their way that may wait in the Secrets: with the dead letters half of what fits, even where nothing compresses. */
const spillBytes = 1024 * 1024;
/** Dead letters of all functions, compressed; three slots hold all there is. */
const letterBytes = 512 * 1024;
/** Once writes have failed for so long, nothing is accepted any more: what runs then would all come again. */
const patienceMs = 15_000;
/** The last write, of a clean end, is tried so often. */
const closeTries = 3;

export interface SecretsJournalOptions {
  readonly transport: KubeTransport;
  /** Where the Secrets are. */
  readonly namespace: string;
  /** They are called `<account>-checkpoint-<n>`. */
  readonly account: string;
  /** Of the Lease that is held. */
  readonly fence: Fence;
  /** Whether they are to hold positions: where they hold none they stay as they are, and are not opened. Default false. */
  readonly isThere?: boolean;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  /** Called once when another runtime has taken the store over. */
  readonly onLost: (error: WatchfireError) => void;
}

/**
 * The store in Secrets that were made beforehand, for replicas on several nodes. It lives in memory. Every five seconds
 * the changes are appended to the log in the first Secret, by compare-and-swap under the fence. Or all of it is written
 * as a snapshot into Secrets that the head does not name yet. So the head always stands for one moment, whole; what was
 * committed after that is lost in an unclean end, as in a power loss.
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
  /** Whether a write of the head went unanswered: it may be there, or yet come, and then other slots count than we know. */
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
   * Reads what the head stands for, and puts this fence into it: from then on its predecessor can write no more.
   * @throws WatchfireError of the checkpoint section; what the transport throws
   */
  static async open(options: SecretsJournalOptions): Promise<SecretsJournal> {
    const secrets = new Secrets(options.transport, options.namespace);
    const names = checkpointSecrets(options.account);
    for (let tries = 0; ; tries++) {
      const name = names[0] ?? "";
      const secret = await secrets.read(name);
      const found = readHead(secret, name);
      const { fence, isThere } = options;
      if (!found && isThere) throw notThere("the Secrets hold no positions");
      if (found && found.fence.lease === fence.lease && found.fence.number > fence.number) throw fenced(found.fence);
      const disk = found
        ? await readDisk(found, name, async (slot) => {
            const { data } = await secrets.read(names[slot] ?? "");
            return data.get("data") ?? Buffer.alloc(0);
          })
        : new MemoryDisk();
      const previousEnd: PreviousEnd = !found ? "new" : found.end === "running" ? "power-loss" : "clean";
      const head: Head = { snapshot: undefined, log: Buffer.alloc(0), ...found, fence, end: "running" };
      const moved = found?.end.startsWith("moved:") ? found.end.slice("moved:".length) : undefined;
      const written = await secrets.write(
        name,
        secret,
        dataOf(moved === undefined ? head : { ...head, end: found?.end ?? "clean" }),
      );
      if (written !== "conflict") {
        disk.end = previousEnd;
        return new SecretsJournal(options, disk, head, written, moved);
      }
      if (tries > 5)
        throw new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", { what: `the Secret ${name} keeps changing` });
    }
  }

  get movedTo(): string | undefined {
    return this.moved;
  }

  /** Whether nothing was in them but the mark of whoever opened them before. */
  get isBlank(): boolean {
    const { snapshot, log } = this.head;
    return this.moved === undefined && !snapshot && log.length === 0;
  }

  /** What the Secrets have stays until the next write. */
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

  /** Notes and applies in one turn, so that no write comes between. */
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

  /** Why entries cannot be taken. Those that only free room always can. */
  private refusal({ known, journal, spill, deadLetters }: JournalEntries): WatchfireError | undefined {
    if (this.fault) return this.fault;
    // Positions take next to nothing, and come with what is forgotten.
    const adds = known.some(({ state }) => state) || journal.length + spill.length + deadLetters.length > 0;
    if (this.full && adds) return this.full;
    if (this.behind.failingMs <= patienceMs) return undefined;
    return new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", {
      what: `the Secrets of ${this.options.account} could not be written for ${Math.round(this.behind.failingMs / 1000)} s`,
      hint: "look at the log for why; handlers start again once a write succeeds",
    });
  }

  /** Without its body, where those that are kept already are many. */
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
    // Puts an end to that: it either takes the place of the head that we know, or is told that another is there.
    if (this.unanswered) await this.put(this.head);
    const slotsOf = (packed: Buffer) => Math.ceil(packed.length / slotBytes);
    // Half of them hold the snapshot before.
    const most = Math.floor((this.names.length - 1) / 2);
    let bytes = await pack(encodeEntry(this.state, Changes.all(this.state)));
    // What removed functions had known is kept for a while only where there is room for it.
    const retired = [...this.state.views.values()].filter(({ retiredAt }) => retiredAt !== undefined);
    if (slotsOf(bytes) > most && retired.length > 0) {
      this.take({ ...emptyEntries, goneViews: retired.map(({ id }) => id) });
      bytes = await pack(encodeEntry(this.state, Changes.all(this.state)));
    }
    const used = this.head.snapshot?.slots ?? [];
    const free = [...this.names.keys()].slice(1).filter((slot) => !used.includes(slot));
    const count = slotsOf(bytes);
    if (count > most) {
      throw new WatchfireError("WF_CHECKPOINT_FULL", {
        what: `what is to be kept takes ${count} Secrets of ${slotBytes / 1024} KiB, and ${most} can be used`,
      });
    }
    const slots = free.slice(0, count);
    for (const [index, slot] of slots.entries()) {
      await this.writeSlot(slot, bytes.subarray(index * slotBytes, (index + 1) * slotBytes));
    }
    return { slots, sha256: digest(bytes) };
  }

  /**
   * A predecessor that is stopped in the middle of writing may go on at any time. It cannot write over what is written
   * here. A slot is only ever written as it was read or written under a head that was still one's own.
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
    const { fence } = this.options;
    if (head?.fence.lease !== fence.lease || head.fence.number !== fence.number) throw fenced(head?.fence);
    this.headSecret = secret;
    return head;
  }

  private async put(head: Head): Promise<void> {
    const name = this.names[0] ?? "";
    this.unanswered = true;
    const written = await this.secrets.write(name, this.headSecret, dataOf(head));
    if (written === "conflict") {
      // Somebody labelled it, or an answer was lost on the way: what is there is ours, and the next write builds on it.
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
        hint: "it is tried again; handlers go on for 15 s",
        cause: error,
      });
