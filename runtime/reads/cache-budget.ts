import type { Clock, Timer } from "../base/clock.ts";
import { type CacheReader, planFairly } from "./fair-plan.ts";

/** How often suspended members are checked for whether they fit again, in milliseconds. The check calls nobody. */
const lookMs = 10_000;
/** How long a member that was suspended rests at least, in milliseconds. Its next list may be as large as the limit. */
const firstRestMs = 30_000;
/** The longest rest, in milliseconds: the rest of a member that is suspended repeatedly doubles up to this. */
const longestRestMs = 300_000;
/** After so many milliseconds without a suspension, the next rest is the first one again. */
const calmMs = 600_000;
/** How often the objects of a suspended member are counted again, in milliseconds: only a list shows that they became fewer. */
const recountMs = 300_000;
/** Part of the limit that may be in use once a member is back that was not counted again. The rest is for members that grow meanwhile. */
const fillTo = 0.9;
/** A member that was not counted again comes back only if it fits when it is so many times larger than it was. */
const reserve = 1.1;

/** Who has a part of the budget. The budget says when it keeps its objects; its demand is what they take. */
export interface CacheMember extends CacheReader {
  /** Its demand is known: all of its objects were read or counted once. */
  readonly isMeasured: boolean;
  /** Keeps its objects from now on. */
  keep(): void;
  /** Keeps none, and counts them. `CacheBudget.measured` is told when that is done. */
  measure(): void;
  /** Keeps none. `equalShare`: what each of the members might have, in bytes. */
  suspend(equalShare: number): void;
}

interface Suspension {
  readonly since: number;
  readonly restMs: number;
  countedAt: number;
}

/**
 * Divides the room for cached objects among functions. While all objects fit, every member keeps its own. Where they do not, the
 * members with most beyond an equal share are suspended, as `planFairly` chooses them. A member whose first list is incomplete is
 * counted before anybody is suspended for it. Suspended members come back by themselves.
 */
export class CacheBudget {
  private readonly limit: number;
  private readonly clock: Clock;
  /** What is in memory, in bytes. */
  private readonly held: () => number;
  private readonly kept = new Set<CacheMember>();
  private readonly measuring = new Set<CacheMember>();
  private readonly suspended = new Map<CacheMember, Suspension>();
  /** Of members that came back: when, and how long they had rested. */
  private readonly returns = new Map<CacheMember, { readonly at: number; readonly restMs: number }>();
  private next: Timer | undefined;

  /** @param limit bytes that all members may take */
  constructor(limit: number, clock: Clock, held: () => number) {
    this.limit = limit;
    this.clock = clock;
    this.held = held;
  }

  /** The member keeps its objects, or will from now on. */
  enter(member: CacheMember): void {
    this.kept.add(member);
  }

  /** The member wants no room, and is told nothing more. */
  leave(member: CacheMember): void {
    this.kept.delete(member);
    this.measuring.delete(member);
    this.suspended.delete(member);
    this.returns.delete(member);
    this.lookLater();
  }

  /** Somebody's objects take more than before. */
  grown(): void {
    if (this.held() <= this.limit) return;
    for (const member of this.unmeasured()) {
      this.measure(member);
      if (this.held() <= this.limit) return;
    }
    this.suspendAllBut(planFairly([...this.kept], this.limit));
  }

  /** The member is done with what `measure` asked for, or needs more than the limit already. */
  measured(member: CacheMember): void {
    if (!this.measuring.delete(member)) return;
    if (this.fits(member)) this.bringBack(member);
    else this.suspend(member);
  }

  /** Those that keep a part of their objects and need nobody knows how much more, the largest first. */
  private unmeasured(): CacheMember[] {
    return [...this.kept]
      .filter(({ isMeasured }) => !isMeasured)
      .map((member) => ({ member, bytes: sumOf(member) }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes)
      .map(({ member }) => member);
  }

  private measure(member: CacheMember): void {
    this.kept.delete(member);
    this.measuring.add(member);
    member.measure();
  }

  private suspendAllBut(stay: ReadonlySet<CacheReader>): void {
    for (const member of [...this.kept]) if (!stay.has(member)) this.suspend(member);
  }

  private suspend(member: CacheMember): void {
    this.kept.delete(member);
    const now = this.clock.monotonic();
    const known = this.suspended.get(member);
    if (known) known.countedAt = now;
    else this.suspended.set(member, { since: now, restMs: this.restOf(member), countedAt: now });
    this.lookLater();
    member.suspend(this.limit / new Set([...this.kept, ...this.measuring, ...this.suspended.keys()]).size);
  }

  private restOf(member: CacheMember): number {
    const last = this.returns.get(member);
    if (!last || this.clock.monotonic() - last.at >= calmMs) return firstRestMs;
    return Math.min(2 * last.restMs, longestRestMs);
  }

  private fits(member: CacheMember): boolean {
    return planFairly([...this.kept, member], this.limit).has(member);
  }

  /** As `fits`, with room to spare: one that fits by little would be suspended again soon. */
  private fitsWell(member: CacheMember): boolean {
    const held = new Set([...this.kept].flatMap(({ demand }) => [...demand.keys()]));
    const demand = new Map(
      [...member.demand].map(([source, bytes]) => [source, held.has(source) ? bytes : reserve * bytes]),
    );
    const larger = { demand };
    return planFairly<CacheReader>([...this.kept, larger], fillTo * this.limit).has(larger) && this.fits(member);
  }

  /** Nobody is suspended for it before its objects really do not fit. */
  private bringBack(member: CacheMember): void {
    const { restMs = firstRestMs } = this.suspended.get(member) ?? {};
    if (this.suspended.delete(member)) this.returns.set(member, { at: this.clock.monotonic(), restMs });
    this.lookLater();
    this.kept.add(member);
    member.keep();
  }

  private lookLater(): void {
    if (this.suspended.size === 0) {
      this.next?.cancel();
      this.next = undefined;
    } else this.next ??= this.clock.after(lookMs, () => this.look(), { unref: true });
  }

  private look(): void {
    this.next = undefined;
    const now = this.clock.monotonic();
    const waiting = [...this.suspended]
      .filter(([member]) => !this.measuring.has(member))
      .sort(([a], [b]) => sumOf(a) - sumOf(b));
    for (const [member, { since, restMs }] of waiting)
      if (now - since >= restMs && this.fitsWell(member)) this.bringBack(member);
    // One at a time: each count is a list of the API server's.
    const [due] = waiting
      .filter(([member, { countedAt }]) => this.suspended.has(member) && now - countedAt >= recountMs)
      .sort(([, a], [, b]) => a.countedAt - b.countedAt);
    if (due) this.measure(due[0]);
    this.lookLater();
  }
}

function sumOf({ demand }: CacheReader): number {
  let sum = 0;
  for (const bytes of demand.values()) sum += bytes;
  return sum;
}
