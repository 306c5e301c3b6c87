import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";
import type { KnownIdentity } from "../../journal/batch.ts";
import type { EventType } from "../../manifest/function.ts";

/**
 * Whether a handler may have received an event before. `none`: it has not. `persisted`: it may have, and the store says so, so
 * that the next process knows it too. `unpersisted`: it may have, and only this process knows, because the machine may have lost
 * the record when it went down.
 */
export type RedeliveryRisk = "none" | "persisted" | "unpersisted";

/** The fields of a new event that decide whether it may be a redelivery. */
interface DeliveredEvent {
  readonly view: number;
  readonly uid: string;
  readonly id: string;
  readonly type: EventType;
}

/** The earlier attempts at an event, and the risk that a handler has received it. */
interface Past {
  readonly attempts: number;
  readonly redeliveryRisk: RedeliveryRisk;
  /** The attempt that only the event's own end removes from the journal. */
  readonly begun?: BegunAttempt | undefined;
}

/** An attempt that had begun: its row in the journal, and the state that its handler received. */
export interface BegunAttempt {
  readonly row: number;
  readonly resourceVersion: ResourceVersion;
}

/** The attempts that had begun when the last process ended. */
export interface BegunBefore {
  attemptsAt(view: number, id: string): number;
  /** The last attempt at the event; `undefined` if there was no attempt. */
  lastOf(view: number, id: string): BegunAttempt | undefined;
  passageBegan(view: number, uid: string, type: "Added" | "Deleted"): boolean;
}

/** Decides for each event of a function whether an earlier process may have delivered it to a handler. */
export class PossibleRedeliveries {
  private readonly begun: BegunBefore;

  constructor(begun: BegunBefore) {
    this.begun = begun;
  }

  /**
   * Returns the past of a new event. Called once for each event.
   * @param isOvertaken whether a handler may have seen this state, or a newer one, in another event. It is stored with the event,
   * because its source disappears with the object's next event, or the next epoch.
   * @param redeliveryRisk the risk that the event's source reports
   */
  ofNew({ view, uid, id, type }: DeliveredEvent, isOvertaken: boolean, redeliveryRisk: RedeliveryRisk): Past {
    const { begun } = this;
    const attempts = begun.attemptsAt(view, id);
    const passed = (type === "Added" || type === "Deleted") && begun.passageBegan(view, uid, type);
    return {
      attempts,
      redeliveryRisk: attempts > 0 || passed || isOvertaken ? graver(redeliveryRisk, "persisted") : redeliveryRisk,
    };
  }

  /** Returns the past of an event read from disk, with the risk stored in its row. */
  ofStored(
    { view, id, replayed }: DeliveredEvent & { readonly replayed: boolean },
    redeliveryRisk: RedeliveryRisk,
  ): Past {
    const attempts = replayed ? 0 : this.begun.attemptsAt(view, id);
    // A replay's state is known already, so only its own end removes its attempt from the journal.
    const begun = replayed ? this.begun.lastOf(view, id) : undefined;
    const hasBegun = attempts > 0 || begun !== undefined;
    return { attempts, redeliveryRisk: hasBegun ? graver(redeliveryRisk, "persisted") : redeliveryRisk, begun };
  }
}

const gravity = { none: 0, persisted: 1, unpersisted: 2 } as const;

/** The greater of two risks. */
export const graver = (a: RedeliveryRisk, b: RedeliveryRisk): RedeliveryRisk => (gravity[a] > gravity[b] ? a : b);

/** The state of an object after its last event. */
export interface LastState {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /**
   * The type of an event that may have run and is not recorded as done. For `Added`, nothing else is known of the object: it is
   * still to be delivered, but its deletion must not be missed either.
   */
  readonly begun?: EventType;
  /** The newest state with such an event. For a deletion that was found it may be newer than the object's resourceVersion. */
  readonly through?: EpochVersion;
}

/**
 * Whether an event is a deletion with the same resourceVersion as the object's last state, as APIs send that are not stored in
 * etcd. The object still exists on record, so the deletion is news, wherever the mark is by then.
 */
export const deletesAtSameVersion = (
  last: Pick<LastState, "uid" | "resourceVersion"> & { readonly deleted: boolean },
  type: EventType,
  { uid, resourceVersion }: Pick<LastState, "uid" | "resourceVersion">,
): boolean => type === "Deleted" && !last.deleted && last.uid === uid && last.resourceVersion === resourceVersion;

/** A resourceVersion, and the epoch in which it is compared. */
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
  /** The journal's row. */
  readonly row: number;
}

/** A state that a handler may have received, without a record that the event is done. */
interface PossiblyDeliveredState extends LastState {
  readonly begun: EventType;
  readonly through: EpochVersion;
  readonly records: readonly Begun[];
}

/**
 * Index by object of the states that handlers may have received beyond the recorded ones. An entry ends with the object's next
 * terminal event, which also removes its attempts from the journal.
 */
export class PossiblyDeliveredObjects {
  private readonly byKey = new Map<string, PossiblyDeliveredState>();
  /** Removes an attempt from the journal. */
  private readonly settle: (begun: Begun) => void;

  constructor(settle: (begun: Begun) => void) {
    this.settle = settle;
  }

  /** Adds an attempt. `known` is the recorded state of the object; `waits` is true if an event of it is on disk. */
  add(attempt: Begun, known: KnownIdentity | undefined, waits: boolean): void {
    const { key, uid, resourceVersion, epoch, type } = attempt;
    const isKnown = known?.uid === uid && !known.deleted;
    const before = this.byKey.get(key);
    const at = { epoch, resourceVersion };
    // The last attempt at an event supersedes the earlier ones.
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

  /** Whether a handler may have seen a newer state of the object than the known one. */
  isSurpassed(key: string, known: Pick<KnownIdentity, "resourceVersion"> | undefined): boolean {
    if (!known || this.byKey.size === 0) return false;
    const { records = [] } = this.byKey.get(key) ?? {};
    return records.some(
      ({ type, resourceVersion }) => type !== "Deleted" && isNewer(resourceVersion, known.resourceVersion),
    );
  }

  /** The object's state for comparison with a list, given its recorded state. */
  alive(key: string, known: KnownIdentity | undefined): LastState | undefined {
    const entry = this.byKey.get(key);
    if (!known || known.deleted) return entry?.begun === "Deleted" ? undefined : entry;
    if (entry?.uid !== known.uid) return known;
    // Its `Added` is done by now, with an older state than the one that had begun.
    const { begun, through } = entry;
    return { ...known, begun: begun === "Added" ? "Modified" : begun, through };
  }

  /**
   * Records that an event of the object, or of a later object of its name, is terminal. An older event, which had been left out
   * before, settles nothing.
   */
  end(type: EventType, key: string, uid: string, at: EpochVersion): void {
    const entry = this.byKey.get(key);
    if (!entry) return;
    const isItsEnd = type === "Deleted" && entry.uid === uid;
    if (!isItsEnd && isBefore(at, entry.through)) return;
    this.byKey.delete(key);
    for (const record of entry.records) this.settle(record);
  }

  [Symbol.iterator](): Iterator<readonly [string, LastState]> {
    return this.byKey.entries();
  }
}

const isBefore = (a: EpochVersion, b: EpochVersion): boolean =>
  a.epoch !== b.epoch ? a.epoch < b.epoch : isNewer(b.resourceVersion, a.resourceVersion);

/**
 * Tracks, for one source after the machine went down, whether an event may be a redelivery without a record. The last writes may
 * be missing, so this holds until the source has delivered everything that the earlier process can have seen.
 */
export class RestartPersistence {
  private readonly lostWrites: boolean;
  private current: boolean;
  /** An earlier process cannot have handled anything newer; `undefined` if that is not known. */
  private upTo: ResourceVersion | undefined;

  /** @param lostWrites whether the last writes may be missing */
  constructor(lostWrites: boolean) {
    this.lostWrites = lostWrites;
    this.current = lostWrites;
  }

  /** The risk for the next change of the source. */
  get redeliveryRisk(): RedeliveryRisk {
    return this.current ? "unpersisted" : "none";
  }

  /** The risk for an event about an object in this state that was not caused by a change of the object. */
  redeliveryRiskOf(resourceVersion: ResourceVersion): RedeliveryRisk {
    const isNews = this.upTo !== undefined && isNewer(resourceVersion, this.upTo);
    return this.lostWrites && !isNews ? "unpersisted" : "none";
  }

  /** Sets the server's newest resourceVersion, as first reported since this process began. */
  serverIsAt(resourceVersion: ResourceVersion): void {
    this.upTo ??= resourceVersion;
  }

  /** Records that a change arrived. */
  sees(resourceVersion: ResourceVersion): void {
    if (this.current && this.upTo !== undefined && isNewer(resourceVersion, this.upTo)) this.current = false;
  }

  /**
   * Records that a stream has delivered everything up to here. The stream may lag behind the server that the earlier process had
   * watched, so this proves nothing while the server's newest resourceVersion is not known.
   */
  hasAllUpTo(resourceVersion: ResourceVersion): void {
    if (this.upTo !== undefined && !isNewer(this.upTo, resourceVersion)) this.current = false;
  }

  /**
   * Records that a list has shown everything up to here. Later changes are news, unless the server lags behind its own newest.
   */
  isListedUpTo(resourceVersion: ResourceVersion): void {
    if (this.upTo === undefined || !isNewer(this.upTo, resourceVersion)) this.current = false;
  }

  /**
   * Restarts the risk after a rewind: the list that follows may have been delivered before, in an epoch whose record is lost.
   */
  beginAgain(): void {
    this.current = this.lostWrites;
    this.upTo = undefined;
  }

  /** Ends the risk: later changes belong to another epoch than everything before. */
  end(): void {
    this.current = false;
  }
}
