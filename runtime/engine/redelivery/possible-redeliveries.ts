import type { ResourceVersion } from "../../base/resource-version.ts";
import type { EventType } from "../../manifest/function.ts";

/**
 * Whether a handler may have been told of an event before. `none`: it was not. `noted`: the store says so, so that the
 * next process knows it too. `unnoted`: only this process knows, because the machine may have lost the record when it
 * went down.
 */
export type RedeliveryRisk = "none" | "noted" | "unnoted";

/** What is asked about an event that is made. */
interface DeliveredEvent {
  readonly view: number;
  readonly uid: string;
  readonly id: string;
  readonly type: EventType;
}

/** Attempts at an event that began before, and whether it may have been told. */
interface Past {
  readonly attempts: number;
  readonly doubt: RedeliveryRisk;
  /** Of an attempt that the event itself is to settle. */
  readonly begun?: BegunAttempt | undefined;
}

/** An attempt that had begun: the journal's row of it, and the state that its handler was shown. */
export interface BegunAttempt {
  readonly row: number;
  readonly resourceVersion: ResourceVersion;
}

/** What had begun when the last process ended. */
export interface BegunBefore {
  attemptsAt(view: number, id: string): number;
  /** The last of them; undefined where none began. */
  lastOf(view: number, id: string): BegunAttempt | undefined;
  passageBegan(view: number, uid: string, type: "Added" | "Deleted"): boolean;
}

/** Says of each event of a function whether a handler may have been told of it by a process before this one. */
export class PossibleRedeliveries {
  private readonly begun: BegunBefore;

  constructor(begun: BegunBefore) {
    this.begun = begun;
  }

  /**
   * The past of an event that is made. Asked once for each event.
   * @param isOvertaken whether a handler may have seen this state, or a newer one, in another event. It goes on record with the
   *   event: what says so is over with the object's next event, or the next epoch.
   * @param doubt what its source says of it
   */
  ofNew({ view, uid, id, type }: DeliveredEvent, isOvertaken: boolean, doubt: RedeliveryRisk): Past {
    const { begun } = this;
    const attempts = begun.attemptsAt(view, id);
    const passed = (type === "Added" || type === "Deleted") && begun.passageBegan(view, uid, type);
    return { attempts, doubt: attempts > 0 || passed || isOvertaken ? graver(doubt, "noted") : doubt };
  }

  /** The past of an event that comes back from disk, where `doubt` was noted of it. */
  ofStored({ view, id, replayed }: DeliveredEvent & { readonly replayed: boolean }, doubt: RedeliveryRisk): Past {
    const attempts = replayed ? 0 : this.begun.attemptsAt(view, id);
    // What it tells is known already: nothing but its own end takes its attempt out of the journal.
    const begun = replayed ? this.begun.lastOf(view, id) : undefined;
    const hasBegun = attempts > 0 || begun !== undefined;
    return { attempts, doubt: hasBegun ? graver(doubt, "noted") : doubt, begun };
  }
}

const gravity = { none: 0, noted: 1, unnoted: 2 } as const;

/** The one of the two that says more. */
export const graver = (a: RedeliveryRisk, b: RedeliveryRisk): RedeliveryRisk => (gravity[a] > gravity[b] ? a : b);
