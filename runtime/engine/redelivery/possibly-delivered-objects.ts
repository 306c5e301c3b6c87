import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";
import type { KnownIdentity } from "../../journal/batch.ts";
import type { EventType } from "../../manifest/function.ts";

/** An object as its last event left it. */
export interface LastState {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /**
   * An event of it that may have run and is not done. Of an Added nothing else is known: it is still to be told of, but
   * its deletion must not be missed either.
   */
  readonly begun?: EventType;
  /** The newest state of which an event had begun so; a deletion that was found may bear more than the object's resourceVersion. */
  readonly through?: EpochVersion;
}

/** A resourceVersion, and the epoch in which it counts. */
interface EpochVersion {
  readonly epoch: number;
  readonly resourceVersion: ResourceVersion;
}

/** An attempt that had begun when the last process ended, and is not known to be done. */
export interface Begun extends EpochVersion {
  readonly type: EventType;
  readonly key: string;
  readonly uid: string;
  readonly id: string;
  /** The journal's. */
  readonly row: number;
}

/** What a handler may have been told of an object, without a record that it is done. */
interface DoubtedObject extends LastState {
  readonly begun: EventType;
  readonly through: EpochVersion;
  readonly records: readonly Begun[];
}

/**
 * What handlers may know beyond what is on record, by object. It ends, and its attempts leave the journal, with the next
 * event of the object that is terminal.
 */
export class PossiblyDeliveredObjects {
  private readonly byKey = new Map<string, DoubtedObject>();
  /** Takes an attempt out of the journal. */
  private readonly settle: (begun: Begun) => void;

  constructor(settle: (begun: Begun) => void) {
    this.settle = settle;
  }

  /** `known`: the object as the view has it. `waits`: an event of it is on disk. */
  add(attempt: Begun, known: KnownIdentity | undefined, waits: boolean): void {
    const { key, uid, resourceVersion, epoch, type } = attempt;
    const isKnown = known?.uid === uid && !known.deleted;
    const before = this.byKey.get(key);
    const at = { epoch, resourceVersion };
    // The last attempt at an event says what all before it do.
    const earlier = before?.records.find(({ id }) => id === attempt.id);
    if (earlier && earlier.row !== attempt.row) this.settle(earlier);
    const records = [...(before?.records ?? []).filter((each) => each !== earlier), attempt];
    const through = before && isBefore(at, before.through) ? before.through : at;
    if (before && (through !== at || (type === "Deleted" && !isKnown))) {
      this.byKey.set(key, { ...before, through, records });
    } else if (type === "Deleted" && !isKnown && !waits) this.settle(attempt);
    else {
      const begun = type === "Deleted" ? type : isKnown ? "Modified" : "Added";
      this.byKey.set(key, { uid, resourceVersion, begun, through, records });
    }
  }

  has(key: string): boolean {
    return this.byKey.has(key);
  }

  /** Whether a handler may have seen this state of the object, or a newer one. */
  isOvertaken(key: string, resourceVersion: ResourceVersion): boolean {
    const records = this.byKey.size === 0 ? undefined : this.byKey.get(key)?.records;
    return records?.some((each) => each.type !== "Deleted" && isUpTo(resourceVersion, each.resourceVersion)) ?? false;
  }

  /** The object as a list is compared with, given what is known of it. */
  alive(key: string, known: KnownIdentity | undefined): LastState | undefined {
    const doubted = this.byKey.get(key);
    if (!known || known.deleted) return doubted?.begun === "Deleted" ? undefined : doubted;
    if (doubted?.uid !== known.uid) return known;
    // Its coming is done by now, in an older state than the one that had begun.
    const { begun, through } = doubted;
    return { ...known, begun: begun === "Added" ? "Modified" : begun, through };
  }

  /** An event of the object is terminal; an older one, which had been left out before, settles nothing. */
  end(type: EventType, key: string, uid: string, at: EpochVersion): void {
    const doubted = this.byKey.get(key);
    if (doubted?.uid !== uid || (type !== "Deleted" && isBefore(at, doubted.through))) return;
    this.byKey.delete(key);
    for (const record of doubted.records) this.settle(record);
  }

  [Symbol.iterator](): Iterator<readonly [string, LastState]> {
    return this.byKey.entries();
  }
}

const isBefore = (a: EpochVersion, b: EpochVersion): boolean =>
  a.epoch !== b.epoch ? a.epoch < b.epoch : isNewer(b.resourceVersion, a.resourceVersion);
