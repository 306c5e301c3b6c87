import type { KnownIdentity, KnownState, KnownWrite } from "../../journal/batch.ts";
import { longestWaitMs } from "./last-bodies.ts";

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
