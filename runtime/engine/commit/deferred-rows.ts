import type { KnownBody, KnownIdentity, KnownState, KnownWrite, LastBody } from "../../journal/batch.ts";

/** A body waits at most so long, in milliseconds, for a newer one of its object. */
export const longestWaitMs = 5_000;
/** The bodies of all functions that wait, in bytes. Where 10,000 Pods of 2.8 KB change in turns, half of it costs 7 us more an event, or more. */
const mostBytes = 32 * 1024 * 1024;
/** One commit takes so many bytes of them, a millisecond or two of it. */
const commitBytes = 512 * 1024;

/** A newer body of an object often is a little longer: so many bytes are left for that. */
const spareBytes = 256;

/** Room for the last bodies that wait, which the slots of a replica share. */
export class BodyRoom {
  private used = 0;

  hasRoomFor(bytes: number): boolean {
    return this.used + bytes <= mostBytes;
  }

  /** Bytes came, or went where negative. */
  hold(bytes: number): void {
    this.used += bytes;
  }
}

interface WaitingBody {
  /** The body is at its beginning. A newer one takes its place: a copy of each would live long enough to cost a full collection. */
  place: Buffer;
  length: number;
  /** When the first of its object came that is not on record. */
  readonly since: number;
}

/**
 * Last bodies that are not on record yet, the newest of each object. An object that changes often has many that are never
 * needed. Only a Deleted that a list finds shows one, and says that its state may be an older one.
 */
export class LastBodies {
  /** Of each view; the object that has waited longest comes first. */
  private readonly views = new Map<number, Map<string, WaitingBody>>();
  private readonly room: BodyRoom;
  private bytes = 0;
  private closed = false;

  constructor(room = new BodyRoom()) {
    this.room = room;
  }

  /** Takes no more, and gives its room to others. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.room.hold(-this.bytes);
  }

  /** Takes the body of an object whose row keeps an older one. Gives whether there was room. */
  take(view: number, key: string, body: Buffer, now: number): boolean {
    const before = this.views.get(view)?.get(key);
    const fits = before !== undefined && before.place.length >= body.length;
    const more = fits ? 0 : body.length + spareBytes - (before?.place.length ?? 0);
    if (this.closed || (more > 0 && !this.room.hasRoomFor(more))) return false;
    const place = fits ? before.place : Buffer.allocUnsafeSlow(body.length + spareBytes);
    this.hold(more);
    body.copy(place);
    if (before) Object.assign(before, { place, length: body.length });
    else this.ofView(view).set(key, { place, length: body.length, since: now });
    return true;
  }

  get(view: number, key: string): KnownBody | undefined {
    const found = this.views.get(view)?.get(key);
    return found && { bytes: Buffer.from(found.place.subarray(0, found.length)), isOlder: false };
  }

  /** The object has a newer body on record, or none is kept of it any more. */
  forget(view: number, key: string): void {
    const ofView = this.views.get(view);
    const found = ofView?.get(key);
    if (!found) return;
    this.hold(-found.place.length);
    ofView?.delete(key);
    if (ofView?.size === 0) this.views.delete(view);
  }

  /** When the next is to be written, as `take` was told the time; undefined where none waits. */
  get due(): number | undefined {
    let oldest: number | undefined;
    for (const ofView of this.views.values()) {
      const [first] = ofView.values();
      if (first && (oldest === undefined || first.since < oldest)) oldest = first.since;
    }
    return oldest === undefined ? undefined : oldest + longestWaitMs;
  }

  /** Lets go of those that came first by `until`, as many as one commit takes. */
  release(until: number): LastBody[] {
    const released: LastBody[] = [];
    let bytes = 0;
    for (const [view, ofView] of this.views) {
      for (const [key, { place, length, since }] of ofView) {
        if (since > until) break;
        const body = place.subarray(0, length);
        if (bytes > 0 && bytes + body.length > commitBytes) return released;
        bytes += body.length;
        released.push({ view, key, body });
        this.forget(view, key);
      }
    }
    return released;
  }

  private hold(bytes: number): void {
    this.bytes += bytes;
    if (!this.closed) this.room.hold(bytes);
  }

  private ofView(view: number): Map<string, WaitingBody> {
    const found = this.views.get(view);
    if (found) return found;
    const made = new Map<string, WaitingBody>();
    this.views.set(view, made);
    return made;
  }
}

/** Rows of all functions that rest; about 60 bytes each, beside what the view has of the object anyway. */
const mostRows = 100_000;
/** One commit takes so many of them, a millisecond or two of it. */
const commitRows = 512;

/** What may not be passed by a position while a row rests. */
export interface PositionHold {
  /** Whose position that is. */
  readonly owner: object;
  /** Called when the row goes into a commit, or another takes its place. */
  readonly ended: () => void;
}

interface Resting {
  identity: KnownIdentity;
  /** A body of an earlier state is on record. */
  readonly hasBody: boolean;
  /** When the first change of the object came that is not on record. */
  readonly since: number;
  /** That change: while it is not passed, none that came after it is. */
  readonly hold: PositionHold;
}

/**
 * Rows of objects whose last changes were held back, and which differ from those on record in the resourceVersion alone.
 * An object that changes often needs only the newest of them. The first change that is not on record holds the position up
 * meanwhile, so that a kill brings it again.
 */
export class RestingRows {
  /** Of each view; the object that has rested longest comes first. */
  private readonly views = new Map<number, Map<string, Resting>>();
  private rows = 0;

  /** Gives whether the row rests, and what is held up then: this change, or one before it. */
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

  /** Lets go of an object's row, which is to be written now, or has another in its place. Gives it. */
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

  /** When the next is to be written, as `put` was told the time; undefined where none rests. */
  get due(): number | undefined {
    let oldest: number | undefined;
    for (const ofView of this.views.values()) {
      const [first] = ofView.values();
      if (first && (oldest === undefined || first.since < oldest)) oldest = first.since;
    }
    return oldest === undefined ? undefined : oldest + longestWaitMs;
  }

  /** Lets go of those that came first by `until`, as many as one commit takes. */
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
