import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { Logger } from "../../observe/log.ts";
import type { HeldSlot } from "../../slots/held-slot.ts";

/** Annotation of a slot's Lease: why its checkpoints cannot be read. Other replicas report it as well. */
const damagedKey = "watchfire.dev/damaged";
/** Interval, in milliseconds, at which damaged checkpoints are read again. Doubles from `from` to `most`. */
const lookMs = { from: 1_000, most: 15_000 };

interface SlotDamageParts {
  readonly held: Pick<HeldSlot, "slot" | "annotations" | "annotate">;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Handles checkpoints of one slot that cannot be read. Only that slot stops, on the replica that holds it, because any other
 * would find the same. After a repair nothing needs to be restarted.
 */
export class DamagedSlots {
  private readonly parts: SlotDamageParts;
  private found: WatchfireError | undefined;

  constructor(parts: SlotDamageParts) {
    this.parts = parts;
  }

  /** Why the checkpoints cannot be read at present, if that is so. */
  get fault(): WatchfireError | undefined {
    return this.found;
  }

  /**
   * Opens the slot once its checkpoints are intact.
   * @param callbacks `read` checks them without writing, because each opening writes; `told` is called if they are damaged
   * @throws the signal's reason; errors of `open` other than damage
   */
  async untilWhole<T>(
    { read, open, damaged }: { read: () => Promise<unknown>; open: () => Promise<T>; damaged: () => void },
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
        if (error.message !== this.found?.message) this.logFault(error);
        damaged();
      }
      await pause(this.parts.clock, waitMs, signal);
    }
  }

  private logFault(fault: WatchfireError): void {
    const { held, log } = this.parts;
    this.found = fault;
    log.error({ slot: held.slot, error: fault.message }, "slot stopped");
    this.note(fault.message);
  }

  /** Reports the damage to other replicas. If the Lease cannot be written, the slot stops all the same. */
  private note(message: string | undefined): void {
    const { held } = this.parts;
    if (held.annotations[damagedKey] !== message) void held.annotate({ [damagedKey]: message }).catch(() => undefined);
  }
}

/** Returns the damage that a slot's Lease reports. `undefined` if the checkpoints can be read. */
export const damageOn = (annotations: Readonly<Record<string, string>> = {}): string | undefined =>
  annotations[damagedKey];
