import type { Clock, Random, Timer } from "../../base/clock.ts";
import { resourceVersion } from "../../base/resource-version.ts";
import type { Cursor } from "../../journal/batch.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { CommitShare } from "../commit/commit-share.ts";
import type { Commits, CursorOwner } from "../commit/commits.ts";

/**
 * Name of the view that holds a reconciler's resync checkpoint. No trigger can have it, because a trigger's name is a DNS label.
 * The view counts as a schedule's, so a store copies it, merges it and retires it as one.
 */
export const resyncTrigger = "(resync)";

/** Looks for keys whose moment has passed: this many in each round, and within these bounds, in milliseconds. */
const looksPerRound = 600;
const lookMs = { least: 1_000, most: 60_000 };

/** After a downtime the checkpoint moves at this multiple of real time until it has reached the present. */
const catchUpFactor = 10;

/** While no key's moment passes, the checkpoint is written once in this share of a round, and once a minute at most. */
const recordsPerRound = 60;
const leastRecordMs = 60_000;

/** Keys that one piece of a look compares with their moments, and wakes: about half a millisecond of either. */
const piece = { keys: 512, woken: 16 };

interface ResyncParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly commits: Pick<Commits, "cursorMoved" | "dropCursor">;
  /** The view that holds the checkpoint. */
  readonly view: number;
  /** The checkpoint as the store has it; undefined if there was no resync before. */
  readonly cursor: Cursor | undefined;
  /** The length of a round, in milliseconds; undefined: no resync. Read at each look, because it can be edited. */
  readonly everyMs: () => number | undefined;
  readonly keys: () => Iterable<string>;
  readonly wake: (key: string) => void;
  /** Is charged for the event loop's time that a look takes. */
  readonly time: Pick<LoopAccount, "pieces">;
  /** The share of a commit that its keys' rows may take. */
  readonly share: Pick<CommitShare, "isSpent" | "soon">;
}

/**
 * Wakes each key once in a round. A key's moment in the round is a hash of its name, counted in wall time. So keys are
 * spread over the round, and a restart does not move them.
 *
 * The checkpoint is the wall time up to which every moment was served. It is on record with the rows of the last keys that it woke, or
 * after them. So a moment that passes while no runtime is up is served after the next start.
 */
export class Resync implements CursorOwner {
  private readonly parts: ResyncParts;
  private timer: Timer | undefined;
  private isStopped = false;
  /** When it looked last, by the monotonic clock. */
  private lookedAt: number;
  /** Epoch milliseconds. */
  private position: number;
  /** The checkpoint that was written last; `undefined` if the store has no checkpoint. */
  private recorded: number | undefined;

  constructor(parts: ResyncParts) {
    const { clock, cursor } = parts;
    this.parts = parts;
    this.lookedAt = clock.monotonic();
    this.recorded = cursor?.lowWaterMark === undefined ? undefined : Number(cursor.lowWaterMark);
    this.position = this.recorded ?? clock.now();
  }

  /** Begins to look. */
  start(): void {
    if (this.parts.everyMs() === undefined) this.leave();
    else if (this.recorded === undefined) this.record();
    this.lookSoon();
  }

  /** Ends looking, and has the checkpoint written with the next commit. */
  stop(): void {
    this.isStopped = true;
    this.timer?.cancel();
    if (this.recorded !== undefined) this.record();
  }

  cursor(): Cursor | undefined {
    if (this.recorded === undefined) return undefined;
    const lowWaterMark = resourceVersion(String(Math.floor(this.position)));
    return { view: this.parts.view, namespace: "", selection: "", epoch: 0, lowWaterMark, initial: false };
  }

  /** Schedules the next look. Without a round it checks once a minute whether an edit has added one. */
  private lookSoon(): void {
    const { clock, random, everyMs } = this.parts;
    const round = everyMs() ?? Number.POSITIVE_INFINITY;
    const delay = Math.min(lookMs.most, Math.max(lookMs.least, round / looksPerRound));
    this.timer = clock.after(delay * (1 + random() / 2), () => void this.look(), { unref: true });
  }

  private async look(): Promise<void> {
    const { clock, everyMs } = this.parts;
    const now = clock.monotonic();
    const passedMs = now - this.lookedAt;
    this.lookedAt = now;
    const round = everyMs();
    try {
      if (round === undefined) this.leave();
      else await this.advance(round, passedMs);
    } finally {
      if (!this.isStopped) this.lookSoon();
    }
  }

  private async advance(round: number, passedMs: number): Promise<void> {
    const { clock } = this.parts;
    const now = clock.now();
    // Wall time that was set back wakes no key now; its moments come again later. If several rounds passed, each key runs once.
    const from = Math.min(now, Math.max(this.position, now - round));
    const to = Math.min(now, from + catchUpFactor * passedMs);
    const hasWoken = to > from && (await this.wakeBetween(from / round, to / round));
    if (this.isStopped) return;
    this.position = to;
    const sinceRecord = Math.abs(to - (this.recorded ?? Number.NEGATIVE_INFINITY));
    if (hasWoken || sinceRecord >= Math.max(leastRecordMs, round / recordsPerRound)) this.record();
  }

  /** Wakes the keys whose moments lie between two times, counted in rounds. Returns whether there was one. */
  private async wakeBetween(from: number, to: number): Promise<boolean> {
    const { keys, wake, time, share } = this.parts;
    const left = keys()[Symbol.iterator]();
    let woken = 0;
    let isOver = false;
    const next = (): boolean => {
      const most = woken + piece.woken;
      for (let count = 0; count < piece.keys && woken < most; count++) {
        const { done, value: key } = left.next();
        isOver = done === true || this.isStopped;
        if (done || isOver) return false;
        if (!isBetween(from, to, shareOf(key))) continue;
        wake(key);
        woken++;
      }
      return !share.isSpent;
    };
    while (!isOver) {
      await time.pieces("keys", next);
      if (!isOver) await new Promise<void>((resolve) => share.soon(resolve));
    }
    return woken > 0;
  }

  private record(): void {
    this.recorded = this.position;
    this.parts.commits.cursorMoved(this);
  }

  /** Drops the checkpoint, because there is no resync. One that an edit adds later starts from then. */
  private leave(): void {
    this.position = this.parts.clock.now();
    if (this.recorded === undefined) return;
    this.recorded = undefined;
    this.parts.commits.dropCursor(this.parts.view, "");
  }
}

/** Whether a moment of a round, as a share of it, lies between two times, counted in rounds. */
const isBetween = (from: number, to: number, share: number): boolean =>
  Math.floor(to - share) > Math.floor(from - share);

/**
 * Returns a key's moment as a share of the round: FNV-1a with murmur3's finalizer, since names differ in their last characters.
 */
function shareOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
