import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";
import type { KnownIdentity } from "../../journal/batch.ts";
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

  /** Whether a handler may have seen a newer state of the object than the one that is known. */
  isSurpassed(key: string, known: Pick<KnownIdentity, "resourceVersion"> | undefined): boolean {
    if (!known || this.byKey.size === 0) return false;
    const { records = [] } = this.byKey.get(key) ?? {};
    return records.some(
      ({ type, resourceVersion }) => type !== "Deleted" && isNewer(resourceVersion, known.resourceVersion),
    );
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

  /**
   * An event of the object, or of a later one of its name, is terminal; an older one, which had been left out before, settles
   * nothing.
   */
  end(type: EventType, key: string, uid: string, at: EpochVersion): void {
    const doubted = this.byKey.get(key);
    if (!doubted) return;
    const isItsEnd = type === "Deleted" && doubted.uid === uid;
    if (!isItsEnd && isBefore(at, doubted.through)) return;
    this.byKey.delete(key);
    for (const record of doubted.records) this.settle(record);
  }

  [Symbol.iterator](): Iterator<readonly [string, LastState]> {
    return this.byKey.entries();
  }
}

const isBefore = (a: EpochVersion, b: EpochVersion): boolean =>
  a.epoch !== b.epoch ? a.epoch < b.epoch : isNewer(b.resourceVersion, a.resourceVersion);

/**
 * What a source brings after the machine went down. The last writes before may be missing, so that an event may have
 * been handled without a record. That lasts until all has come that the process before can have seen.
 */
export class RestartPersistence {
  private readonly lostWrites: boolean;
  private current: boolean;
  /** Nothing newer can have been handled by a process before this one; undefined where that is not known. */
  private upTo: ResourceVersion | undefined;

  /** @param lostWrites whether the last writes may be missing */
  constructor(lostWrites: boolean) {
    this.lostWrites = lostWrites;
    this.current = lostWrites;
  }

  /** Of what comes next. */
  get doubt(): RedeliveryRisk {
    return this.current ? "unnoted" : "none";
  }

  /** Of what is told of an object that stands at this, and for another reason than a change of it. */
  doubtOf(resourceVersion: ResourceVersion): RedeliveryRisk {
    const isNews = this.upTo !== undefined && isNewer(resourceVersion, this.upTo);
    return this.lostWrites && !isNews ? "unnoted" : "none";
  }

  /** The server's newest, as it was first said since this process began. */
  serverIsAt(resourceVersion: ResourceVersion): void {
    this.upTo ??= resourceVersion;
  }

  /** A change comes. */
  sees(resourceVersion: ResourceVersion): void {
    if (this.current && this.upTo !== undefined && isNewer(resourceVersion, this.upTo)) this.current = false;
  }

  /**
   * A stream has brought all up to here. It may lag behind the server that the process before this one had listened to.
   * So it proves nothing while the server's newest is not known.
   */
  hasAllUpTo(resourceVersion: ResourceVersion): void {
    if (this.upTo !== undefined && !isNewer(this.upTo, resourceVersion)) this.current = false;
  }

  /** A list has shown all up to here. What comes next is news, unless the server lags behind its own newest. */
  isListedUpTo(resourceVersion: ResourceVersion): void {
    if (this.upTo === undefined || !isNewer(this.upTo, resourceVersion)) this.current = false;
  }

  /** Time went back: the list that follows may have been told before, in an epoch whose record is lost. */
  beginAgain(): void {
    this.current = this.lostWrites;
    this.upTo = undefined;
  }

  /** What comes next is of another time than all before. */
  end(): void {
    this.current = false;
  }
}
