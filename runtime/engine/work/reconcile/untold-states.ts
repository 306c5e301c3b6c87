import type { SpilledEvent, SpillHeader } from "../../../journal/batch.ts";
import type { Spill } from "../spill.ts";

/**
 * Objects whose states wait on disk to be told without a flag, in events that an edit made of keys. They are known already, so
 * that a run could show one before its event has ended. A later edit would then have that event told as news.
 */
export class UntoldStates {
  private readonly spill: Pick<Spill, "hasRead">;
  /** By object, the last event's place. */
  private readonly sequences = new Map<string, number>();
  /** Whether an event of the object is in memory. To be set before it is asked. */
  isInLane: (key: string) => boolean = () => false;

  constructor(
    events: Iterable<Pick<SpillHeader | SpilledEvent, "namespace" | "name" | "sequence">>,
    spill: UntoldStates["spill"],
  ) {
    this.spill = spill;
    for (const { namespace, name, sequence } of events) this.sequences.set(`${namespace}/${name}`, sequence);
  }

  has(key: string): boolean {
    const sequence = this.sequences.get(key);
    if (sequence === undefined) return false;
    if (!this.spill.hasRead(sequence) || this.isInLane(key)) return true;
    this.sequences.delete(key);
    return false;
  }
}
