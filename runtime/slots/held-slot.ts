import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { LeaseWriteRetries, leaseMs } from "../lease/elector.ts";
import type { LeaseApi } from "../lease/lease-api.ts";
import { type Fence, fenceOf, type LeaseChange, type LeaseRecord } from "../lease/lease-record.ts";

/** Timeout of one request, in milliseconds. */
const requestMs = 3_000;
/** Milliseconds until the retry of a failed write. */
const againMs = 500;

interface HeldSlotOptions {
  readonly slot: number;
  /** The Lease when it was taken, in this replica's name. */
  readonly record: LeaseRecord;
  readonly api: LeaseApi;
  /** Whether the replica still holds its own Lease. */
  readonly isAlive: () => boolean;
  readonly clock: Clock;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/** Takes a slot by its Lease, compared with the listed one; `undefined` if it had no Lease. Returns "conflict" if somebody was quicker. */
export function claimSlot(api: LeaseApi, listed: LeaseRecord | undefined, holder: string, clock: Clock) {
  const now = clock.now();
  const claim = { holder, durationMs: leaseMs, acquiredAt: now, renewedAt: now };
  return listed
    ? api.update(listed, { ...claim, transitions: listed.transitions + 1 }, requestMs)
    : api.create({ ...claim, transitions: 1 }, requestMs);
}

/** One slot, from when this replica took it until it releases it. */
export class HeldSlot {
  readonly slot: number;
  private readonly options: HeldSlotOptions;
  private readonly owner: string;
  private readonly writing: LeaseWriteRetries;
  private record: LeaseRecord;
  private isOver = false;
  private making: Promise<unknown> | undefined;
  /** Serialises writes, each based on the resourceVersion of the preceding one. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(options: HeldSlotOptions) {
    const { slot, record } = options;
    this.options = options;
    this.slot = slot;
    this.record = record;
    this.owner = record.holder;
    this.writing = new LeaseWriteRetries(`the Lease of slot ${slot}`, options.log);
  }

  /** Whether it is held now. Must be checked just before any action that is reserved for the holder. */
  get holds(): boolean {
    return !this.isOver && this.options.isAlive();
  }

  /** The fencing token. Later owners of the slot have higher numbers. */
  get fence(): Fence {
    return fenceOf(this.record);
  }

  /** Why its Lease cannot be written; `undefined` if it can. */
  get unwritten(): WatchfireError | undefined {
    return this.writing.trouble;
  }

  /** The Lease's annotations when last seen. */
  get annotations(): Readonly<Record<string, string>> {
    return this.record.annotations;
  }

  /** Writes annotations. An `undefined` value removes one. @throws WatchfireError WF_LEASE_LOST if the slot is lost meanwhile */
  async annotate(annotations: Readonly<Record<string, string | undefined>>): Promise<void> {
    if (!(await this.write({ annotations }))) {
      throw new WatchfireError("WF_LEASE_LOST", { what: `slot ${this.slot} was lost before it could be annotated` });
    }
  }

  /** Raises the fence above a number, while the slot is held. Returns the fence, or `undefined` if the slot is lost. */
  async raise(above: number): Promise<Fence | undefined> {
    const isRaised = await this.write({ transitions: above + 1 });
    return isRaised && this.holds ? this.fence : undefined;
  }

  /** Creates its Lease again after it was deleted. The next check finds out whether it belongs to this replica. Never rejects. */
  makeAgain(): void {
    // The list may be older than its release.
    if (this.isOver) return;
    this.making ??= this.write({})
      .catch(() => false)
      .finally(() => {
        this.making = undefined;
      });
  }

  /** Releases the slot; work that needs it must have ended. Returns whether the API server confirmed it. Never rejects. */
  async release(): Promise<boolean> {
    this.isOver = true;
    return this.write({ holder: "" }).catch(() => false);
  }

  private write(change: LeaseChange): Promise<boolean> {
    const written = this.last.then(() => this.writeNow(change));
    this.last = written.catch(() => undefined);
    return written;
  }

  /** Returns false if it does not belong to this replica any more. */
  private async writeNow(change: LeaseChange): Promise<boolean> {
    const { api, clock, isAlive } = this.options;
    const { transitions = Number.POSITIVE_INFINITY } = change;
    if (transitions <= this.fence.number) return true;
    while (isAlive()) {
      try {
        const written = await api.update(this.record, change, requestMs);
        if (written !== "conflict") {
          this.record = written;
          this.writing.written();
          return true;
        }
        // It was annotated by another process, or an answer was lost.
        const found = await api.get(requestMs);
        if (!found) {
          if (await this.createAgain(change)) return true;
        } else if (
          found.holder !== this.owner ||
          (found.transitions !== this.fence.number && found.transitions !== transitions)
        )
          return change.holder === "";
        else this.record = found;
      } catch (error) {
        this.writing.failed(error instanceof Error ? error.message : String(error));
        await pause(clock, againMs);
      }
    }
    return false;
  }

  /**
   * Creates the deleted Lease again, with its former content. Other replicas wait 10 s after they saw that it is gone. Returns
   * whether it exists now; false if another replica was faster, or if an earlier request of this replica, whose answer was lost,
   * created it.
   */
  private async createAgain(change: LeaseChange): Promise<boolean> {
    const { api, clock, log } = this.options;
    const { slot, owner, fence, record } = this;
    const now = clock.now();
    const own = { holder: owner, durationMs: leaseMs, transitions: fence.number, acquiredAt: now, renewedAt: now };
    const annotations = { ...record.annotations, ...change.annotations };
    const made = await api.create({ ...own, ...change, annotations }, requestMs);
    if (made === "conflict") return false;
    log.warn({ slot, lease: made.name }, "slot lease was deleted, created again");
    this.record = made;
    this.writing.written();
    return true;
  }
}
