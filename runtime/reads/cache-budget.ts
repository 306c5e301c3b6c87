import type { Clock, Timer } from "../base/clock.ts";

/** Milliseconds between two checks whether suspended members fit again. The check makes no request. */
const lookMs = 10_000;
/** Minimum milliseconds for which a member stays suspended. Its next list may be as large as the limit. */
const firstRestMs = 30_000;
/** Maximum milliseconds of that. The time doubles up to this for a member that is suspended repeatedly. */
const longestRestMs = 300_000;
/** Milliseconds without a suspension after which the next one is a first one again. */
const calmMs = 600_000;
/** Milliseconds between two counts of a suspended member's objects: only a list shows that they became fewer. */
const recountMs = 300_000;
/**
 * Share of the limit that may be in use after a member returns without a new count. The rest is for members that grow meanwhile.
 */
const fillTo = 0.9;
/** Factor by which a member is assumed to have grown when it returns without a new count. */
const reserve = 1.1;

/** A function with a part of the budget. The budget decides whether it keeps its objects; its demand is their size. */
export interface CacheMember extends CacheReader {
  /** Whether its demand is known: all of its objects were read or counted once. */
  readonly isMeasured: boolean;
  /** Starts to keep its objects. */
  keep(): void;
  /** Drops its objects and counts them. It calls `CacheBudget.measured` when the count is complete. */
  measure(): void;
  /** Drops its objects. `equalShare`: the budget divided equally among the members, in bytes. */
  suspend(equalShare: number): void;
}

interface Suspension {
  readonly since: number;
  readonly restMs: number;
  countedAt: number;
}

/**
 * Divides the room for cached objects among functions. While all objects fit, every member keeps its own. If they do not fit, the
 * members furthest above an equal share are suspended, as chosen by `planFairly`. A member whose first list is incomplete is
 * counted before another is suspended for it. Suspended members return automatically.
 */
export class CacheBudget {
  private readonly limit: number;
  private readonly clock: Clock;
  /** Returns the bytes in memory. */
  private readonly held: () => number;
  private readonly kept = new Set<CacheMember>();
  private readonly measuring = new Set<CacheMember>();
  private readonly suspended = new Map<CacheMember, Suspension>();
  /** For members that returned: when, and how long they had been suspended. */
  private readonly returns = new Map<CacheMember, { readonly at: number; readonly restMs: number }>();
  private next: Timer | undefined;

  /** @param limit bytes that all members may take */
  constructor(limit: number, clock: Clock, held: () => number) {
    this.limit = limit;
    this.clock = clock;
    this.held = held;
  }

  /** Adds a member that keeps its objects, or is about to. */
  enter(member: CacheMember): void {
    this.kept.add(member);
  }

  /** Removes a member. No more of its methods are called. */
  leave(member: CacheMember): void {
    this.kept.delete(member);
    this.measuring.delete(member);
    this.suspended.delete(member);
    this.returns.delete(member);
    this.lookLater();
  }

  /** Called when a member's objects take more memory than before. */
  grown(): void {
    if (this.held() <= this.limit) return;
    for (const member of this.unmeasured()) {
      this.measure(member);
      if (this.held() <= this.limit) return;
    }
    this.suspendAllBut(planFairly([...this.kept], this.limit));
  }

  /** Called when a member has completed the count that `measure` requested, or already exceeds the limit. */
  measured(member: CacheMember): void {
    if (!this.measuring.delete(member)) return;
    if (this.fits(member)) this.restore(member);
    else this.suspend(member);
  }

  /** Members whose objects are only partly read, so that their demand is unknown, largest first. */
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

  /** Like `fits`, but with a reserve: a member that barely fits would soon be suspended again. */
  private fitsWell(member: CacheMember): boolean {
    const held = new Set([...this.kept].flatMap(({ demand }) => [...demand.keys()]));
    const demand = new Map(
      [...member.demand].map(([source, bytes]) => [source, held.has(source) ? bytes : reserve * bytes]),
    );
    const larger = { demand };
    return planFairly<CacheReader>([...this.kept, larger], fillTo * this.limit).has(larger) && this.fits(member);
  }

  /** Lets a member return. Others are suspended for it only when its objects really do not fit. */
  private restore(member: CacheMember): void {
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
      if (now - since >= restMs && this.fitsWell(member)) this.restore(member);
    // One at a time, because each count is a list request to the API server.
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

/** A function that needs room for the objects of some sources. */
interface CacheReader {
  /** Bytes by source key (`sourceKey`). */
  readonly demand: ReadonlyMap<string, number>;
}

/** The sources of some readers. Each source takes its bytes once, however many readers it has. */
class SourcePool {
  private readonly sizes = new Map<string, number>();
  private readonly readers = new Map<string, number>();
  total = 0;

  /** Readers may report different sizes of one source, if one has not read all of it. The largest counts. */
  constructor(holders: Iterable<CacheReader>) {
    for (const { demand } of holders)
      for (const [source, bytes] of demand) this.sizes.set(source, Math.max(bytes, this.sizes.get(source) ?? 0));
  }

  add({ demand }: CacheReader): void {
    for (const source of demand.keys()) this.read(source, 1);
  }

  remove({ demand }: CacheReader): void {
    for (const source of demand.keys()) this.read(source, -1);
  }

  /** Returns the bytes charged to a reader: those of each source are divided equally among its readers. */
  chargeOf({ demand }: CacheReader): number {
    let charge = 0;
    for (const source of demand.keys()) charge += this.sizeOf(source) / (this.readers.get(source) ?? 1);
    return charge;
  }

  private read(source: string, more: 1 | -1): void {
    const before = this.readers.get(source) ?? 0;
    this.readers.set(source, before + more);
    if (Math.min(before, before + more) === 0) this.total += more * this.sizeOf(source);
  }

  private sizeOf(source: string): number {
    return this.sizes.get(source) ?? 0;
  }
}

/**
 * Chooses the readers that may keep their objects within the limit. While the sum exceeds the limit, the reader with the largest
 * charge is left out. The charges add up to the sum, so the largest is above an equal share. If two charges are equal, the later
 * in order is left out. A reader that fits in the end after all, for example because its source stays for another reader, is
 * kept.
 */
export function planFairly<Of extends CacheReader>(holders: readonly Of[], limit: number): Set<Of> {
  const pool = new SourcePool(holders);
  const kept = new Set(holders);
  for (const holder of kept) pool.add(holder);
  const left: Of[] = [];
  while (pool.total > limit && kept.size > 0) {
    const most = mostCharged(kept, pool);
    kept.delete(most);
    pool.remove(most);
    left.push(most);
  }
  for (const holder of left.reverse()) {
    pool.add(holder);
    if (pool.total <= limit) kept.add(holder);
    else pool.remove(holder);
  }
  return kept;
}

function mostCharged<Of extends CacheReader>(holders: Iterable<Of>, pool: SourcePool): Of {
  let most: { readonly holder: Of; readonly charge: number } | undefined;
  for (const holder of holders) {
    const charge = pool.chargeOf(holder);
    if (!most || charge >= most.charge) most = { holder, charge };
  }
  if (!most) throw new Error("nobody holds anything");
  return most.holder;
}
