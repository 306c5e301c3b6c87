import type { KnownBody, KnownIdentity, KnownState, KnownWrite, LastBody } from "../../journal/batch.ts";
import { apart, largeBytes } from "../../v8/own-copy.ts";

/** The longest time that a body waits for a newer one of its object, in milliseconds. */
export const longestWaitMs = 5_000;
/**
 * The time after which a body or row joins any commit, in milliseconds. Without it, each body of a steady stream of events caused a
 * commit when its five seconds were over: 60 events a second took 150 commits instead of 60.
 */
export const ripeMs = 4_500;
/**
 * Limit for the waiting bodies of all functions, in bytes. If 10,000 Pods of 2.8 KB change in turn, half of it costs at least 7
 * us more an event.
 */
const mostBytes = 32 * 1024 * 1024;
/** The bytes of bodies in one commit, which take a millisecond or two of it. */
const commitBytes = 512 * 1024;

/** Spare bytes of a body's buffer. A newer body of an object is often a little longer. */
const spareBytes = 256;

/** The memory for last bodies that wait, shared by the slots of a replica. */
export class BodyRoom {
  private used = 0;
  /** The number of holders of each large body. A hundred triggers that receive an object hold one body. */
  private readonly holders = new Map<Buffer, number>();

  hasRoomFor(bytes: number): boolean {
    return this.used + bytes <= mostBytes;
  }

  /** Adds bytes; a negative number releases them. */
  hold(bytes: number): void {
    this.used += bytes;
  }

  /** Adds a holder of a large body. Returns whether there was room. */
  holdLarge(body: Buffer): boolean {
    const holders = this.holders.get(body) ?? 0;
    if (holders === 0) {
      if (!this.hasRoomFor(body.length)) return false;
      this.hold(body.length);
    }
    this.holders.set(body, holders + 1);
    return true;
  }

  releaseLarge(body: Buffer): void {
    const holders = this.holders.get(body) ?? 0;
    if (holders > 1) this.holders.set(body, holders - 1);
    else if (this.holders.delete(body)) this.hold(-body.length);
  }
}

interface WaitingBody {
  /**
   * A buffer with the body at its start. A newer body overwrites it: a copy of each would live long enough to cost a full garbage
   * collection. A large body is held as it is, and never overwritten.
   */
  place: Buffer;
  length: number;
  isLarge: boolean;
  /** The time at which the object's first unwritten body arrived. */
  readonly since: number;
}

/** Rows that wait to be written, by view. In each view, the row that has waited longest is first. */
class WaitingRows<T extends { readonly since: number }> {
  protected readonly views = new Map<number, Map<string, T>>();

  /** The time at which the next row must be written, in the clock of `since`; `undefined` if no row waits. */
  get due(): number | undefined {
    let oldest: number | undefined;
    for (const ofView of this.views.values()) {
      const [first] = ofView.values();
      if (first && (oldest === undefined || first.since < oldest)) oldest = first.since;
    }
    return oldest === undefined ? undefined : oldest + longestWaitMs;
  }
}

/**
 * The newest body of each object whose last body is not written yet. An object that changes often has many bodies that are never
 * needed: only a `Deleted` that a list finds shows one, and it says that the state may be an older one.
 */
export class LastBodies extends WaitingRows<WaitingBody> {
  private readonly room: BodyRoom;
  /** The latest `since` of all bodies. */
  private latest = Number.NEGATIVE_INFINITY;
  private closed = false;

  constructor(room = new BodyRoom()) {
    super();
    this.room = room;
  }

  /** Stops accepting bodies, and releases the memory for others. */
  close(): void {
    if (this.closed) return;
    for (const ofView of this.views.values()) for (const waiting of ofView.values()) this.free(waiting);
    this.closed = true;
  }

  /**
   * Takes the newest body of an object. Returns whether there was room.
   * @param since now, or an earlier time for a body that must not wait as long as others
   */
  take(view: number, key: string, body: Buffer, since: number): boolean {
    if (this.closed) return false;
    const before = this.views.get(view)?.get(key);
    const place = body.length >= largeBytes ? this.holdLarge(body, before) : this.copy(body, before);
    if (!place) {
      // The body before would pass for the newest.
      this.forget(view, key);
      return false;
    }
    const waiting = { place, length: body.length, isLarge: body.length >= largeBytes };
    if (before) Object.assign(before, waiting);
    else this.enter(view, key, { ...waiting, since });
    return true;
  }

  private enter(view: number, key: string, waiting: WaitingBody): void {
    const ofView = this.ofView(view).set(key, waiting);
    if (waiting.since >= this.latest) this.latest = waiting.since;
    else this.views.set(view, new Map([...ofView].toSorted(([, a], [, b]) => a.since - b.since)));
  }

  /** Holds a large body in place of the one before. Returns `undefined` if there is no room. */
  private holdLarge(body: Buffer, before: WaitingBody | undefined): Buffer | undefined {
    const place = apart(body);
    if (before) {
      this.free(before);
      Object.assign(before, { place: Buffer.alloc(0), length: 0, isLarge: false });
    }
    return this.room.holdLarge(place) ? place : undefined;
  }

  /** Copies a body into the memory of the one before, if it fits there. Returns `undefined` if there is no room. */
  private copy(body: Buffer, before: WaitingBody | undefined): Buffer | undefined {
    let place = before && !before.isLarge && before.place.length >= body.length ? before.place : undefined;
    if (!place) {
      const bytes = body.length + spareBytes;
      const freed = before && !before.isLarge ? before.place.length : 0;
      if (!this.room.hasRoomFor(bytes - freed)) return undefined;
      if (before) this.free(before);
      place = Buffer.allocUnsafeSlow(bytes);
      this.room.hold(bytes);
    }
    body.copy(place);
    return place;
  }

  get(view: number, key: string): KnownBody | undefined {
    const found = this.views.get(view)?.get(key);
    if (!found) return undefined;
    // A large body is never overwritten.
    return { bytes: found.isLarge ? found.place : Buffer.from(found.place.subarray(0, found.length)), isOlder: false };
  }

  /** Drops the body: a newer one is being written, or no body of the object is stored any more. */
  forget(view: number, key: string): void {
    const ofView = this.views.get(view);
    const found = ofView?.get(key);
    if (!found) return;
    this.free(found);
    ofView?.delete(key);
    if (ofView?.size === 0) this.views.delete(view);
  }

  /** Removes and returns the bodies that have waited since `until` or longer, as many as one commit takes. */
  release(until: number): LastBody[] {
    const released: LastBody[] = [];
    let bytes = 0;
    for (const [view, ofView] of this.views) {
      for (const [key, { place, length, since }] of ofView) {
        if (since > until) break;
        const body = place.subarray(0, length);
        if (bytes > 0 && bytes + body.length > commitBytes) {
          // The next commit begins with another view.
          this.views.delete(view);
          this.views.set(view, ofView);
          return released;
        }
        bytes += body.length;
        released.push({ view, key, body });
        this.forget(view, key);
      }
    }
    return released;
  }

  private free({ place, isLarge }: WaitingBody): void {
    if (this.closed) return;
    if (isLarge) this.room.releaseLarge(place);
    else this.room.hold(-place.length);
  }

  private ofView(view: number): Map<string, WaitingBody> {
    const found = this.views.get(view);
    if (found) return found;
    const made = new Map<string, WaitingBody>();
    this.views.set(view, made);
    return made;
  }
}

/** Limit for the resting rows of all functions. Each takes about 60 bytes more than the known objects take anyway. */
const mostRows = 100_000;
/** The rows in one commit, which take a millisecond or two of it. */
const commitRows = 512;

/** Keeps a checkpoint from passing a change while its row rests. */
export interface PositionHold {
  /** The owner of that checkpoint. */
  readonly owner: object;
  /** Called when the row goes into a commit, or another row replaces it. */
  readonly ended: () => void;
}

interface Resting {
  identity: KnownIdentity;
  /** Whether a body of an earlier state is stored. */
  readonly hasBody: boolean;
  /** The time of the object's first change that is not recorded. */
  readonly since: number;
  /** The hold on that change: until the checkpoint passes it, no later change is passed. */
  readonly hold: PositionHold;
}

/**
 * Rows of objects whose last changes were held back, and that differ from the stored rows only in the resourceVersion. An object
 * that changes often needs only the newest of them. Meanwhile the first unrecorded change holds back the checkpoint, so that it is
 * received again after a kill.
 */
export class RestingRows extends WaitingRows<Resting> {
  private rows = 0;

  /**
   * Adds a row. Returns whether this change holds back the checkpoint (`held`), or an earlier one does (`behind`); `undefined` if
   * the row cannot rest.
   */
  put(view: number, key: string, now: number, row: Omit<Resting, "since">): "held" | "behind" | undefined {
    let ofView = this.views.get(view);
    const before = ofView?.get(key);
    if (before) {
      if (before.hold.owner !== row.hold.owner) return undefined;
      before.identity = row.identity;
      return "behind";
    }
    if (this.rows >= mostRows) return undefined;
    if (!ofView) {
      ofView = new Map();
      this.views.set(view, ofView);
    }
    ofView.set(key, { identity: row.identity, hasBody: row.hasBody, since: now, hold: row.hold });
    this.rows++;
    return "held";
  }

  has(view: number, key: string): boolean {
    return this.views.get(view)?.has(key) ?? false;
  }

  /** Removes and returns an object's row, which is written now, or replaced by another. */
  take(view: number, key: string): KnownState | undefined {
    const ofView = this.views.get(view);
    const found = ofView?.get(key);
    if (!found) return undefined;
    ofView?.delete(key);
    this.rows--;
    if (ofView?.size === 0) this.views.delete(view);
    found.hold.ended();
    return { ...found.identity, body: found.hasBody ? "older" : undefined };
  }

  /** Removes and returns the rows that have rested since `until` or longer, as many as one commit takes. */
  release(until: number): (KnownWrite & { readonly state: KnownState })[] {
    const released: (KnownWrite & { readonly state: KnownState })[] = [];
    for (const [view, ofView] of this.views) {
      for (const [key, { since }] of ofView) {
        if (since > until || released.length >= commitRows) break;
        const state = this.take(view, key);
        if (state) released.push({ view, key, state });
      }
    }
    return released;
  }
}
