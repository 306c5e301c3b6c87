import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { Logger } from "../../observe/log.ts";
import type { HeldSlot } from "../../slots/held-slot.ts";

/** On a slot's Lease: why its positions cannot be read. Replicas that do not have it tell of it too. */
const damagedKey = "watchfire.dev/damaged";
/** How soon it is looked whether they can be read again, in milliseconds: at first soon, then ever later. */
const lookMs = { from: 1_000, most: 15_000 };

interface SlotDamageParts {
  readonly held: Pick<HeldSlot, "slot" | "annotations" | "annotate">;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Positions of one slot that cannot be read. The slot alone stands still, with the replica that took it: any other would find
 * them so as well. Whoever repairs them need not restart anything.
 */
export class DamagedSlots {
  private readonly parts: SlotDamageParts;
  private found: WatchfireError | undefined;

  constructor(parts: SlotDamageParts) {
    this.parts = parts;
  }

  /** Why they cannot be read, while that is so. */
  get fault(): WatchfireError | undefined {
    return this.found;
  }

  /**
   * Opens them once they are whole.
   * @param read looks whether they are: each opening writes, and so much would be written for nothing
   * @param told called when they are found damaged
   * @throws the signal's reason; what opening throws of anything else
   */
  async untilWhole<T>(
    { read, open, told }: { read: () => Promise<unknown>; open: () => Promise<T>; told: () => void },
    signal: AbortSignal,
  ): Promise<T> {
    for (let waitMs = lookMs.from; ; waitMs = Math.min(2 * waitMs, lookMs.most)) {
      try {
        if (this.found) await read();
        const opened = await open();
        this.found = undefined;
        this.note(undefined);
        return opened;
      } catch (error) {
        if (!(error instanceof WatchfireError) || error.code !== "WF_CHECKPOINT_CORRUPT") throw error;
        signal.throwIfAborted();
        if (error.message !== this.found?.message) this.tell(error);
        told();
      }
      await pause(this.parts.clock, waitMs, signal);
    }
  }

  private tell(fault: WatchfireError): void {
    const { held, log } = this.parts;
    this.found = fault;
    log.error({ slot: held.slot, error: fault.message }, "slot stands still");
    this.note(fault.message);
  }

  /** For the others; where it cannot be written, the slot stands still all the same. */
  private note(message: string | undefined): void {
    const { held } = this.parts;
    if (held.annotations[damagedKey] !== message) void held.annotate({ [damagedKey]: message }).catch(() => undefined);
  }
}

/** What a slot's Lease says of its positions; undefined where they can be read. */
export const damageOn = (annotations: Readonly<Record<string, string>> = {}): string | undefined =>
  annotations[damagedKey];
