// Decides which function caused an executor's death, and what follows for it. Pure: the time is passed with each call.
import type { DeathReason } from "./executor-process.ts";

/**
 * A function's part in its executor's death.
 *
 * - `proven`: it had the executor to itself.
 * - `culprit`: its code alone was running.
 * - `suspect`: it was running with others, or the executor exceeded memory that is not counted per function.
 * - `present`: its code had run there before, and some of that memory may be its own.
 * - `bystander`: all others.
 */
export type Involvement = "proven" | "culprit" | "suspect" | "present" | "bystander";

/** The known facts at an executor's death. Functions are given by their numbers in that executor. */
export interface Scene {
  readonly reason: DeathReason;
  readonly tenants: readonly number[];
  /** Functions whose code has run there. */
  readonly ran: ReadonlySet<number>;
  /** Entries at that moment. `isOver`: it broke a limit and was reported, but its thread had not stopped. */
  readonly inside: readonly { readonly tenant: number; readonly ms: number; readonly isOver: boolean }[];
  /** The function in whose name a message was sent that no guest can send, or that could not be handled. */
  readonly blamed: number | undefined;
  /** Whether the executor ended itself after naming the function at fault. */
  readonly wasDoomed: boolean;
}

/** Milliseconds in an entry that make a function suspect, unless all have been inside for less. */
const suspectMs = 20;

/** Returns the functions that were inside: those over a limit, else those inside for `suspectMs`, else all. */
function suspects(inside: Scene["inside"]): number[] {
  const over = inside.filter(({ isOver }) => isOver);
  const long = inside.filter(({ ms }) => ms >= suspectMs);
  const most = over.length > 0 ? over : long.length > 0 ? long : inside;
  return [...new Set(most.map(({ tenant }) => tenant))];
}

/**
 * Returns each function's part in an executor's death. At most one is charged, and only if it alone was inside or on the
 * executor.
 */
export function involvementsOf(scene: Scene): ReadonlyMap<number, Involvement> {
  const { reason, tenants, ran, inside, blamed, wasDoomed } = scene;
  const involvements = new Map<number, Involvement>(tenants.map((id) => [id, "bystander"]));
  if (reason === "closed" || wasDoomed) return involvements;
  const isShared = tenants.length > 1;
  const sure = isShared ? "culprit" : "proven";
  if (blamed !== undefined) return involvements.set(blamed, sure);
  const names = suspects(inside);
  // Memory that is not counted per function, such as that of formatters, may have been left by another function.
  const isUncounted = reason === "memory" && isShared && !inside.some(({ isOver }) => isOver);
  if (isUncounted) for (const id of tenants) if (ran.has(id)) involvements.set(id, "present");
  if (reason === "memory" && !isShared) for (const id of tenants) involvements.set(id, sure);
  for (const id of names) involvements.set(id, names.length === 1 && !isUncounted ? sure : "suspect");
  return involvements;
}

/** Suspicion that a death adds to a function. */
const weights: Readonly<Record<Involvement, number>> = {
  proven: 2,
  culprit: 2,
  suspect: 1,
  present: 0.2,
  bystander: 0,
};

/**
 * How long a function is quarantined (runs alone) once its suspicion reaches a threshold: both the number of events and the
 * milliseconds must pass. A function that causes deaths at long intervals is released twice, and from the third time on stays
 * quarantined until its code changes.
 */
const terms = [
  { suspicion: 3, events: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY },
  { suspicion: 2, events: 200, ms: 3_600_000 },
  { suspicion: 1, events: 20, ms: 60_000 },
];

/** Milliseconds that a function is parked after its second death in a row. Doubles with each further death, up to the maximum. */
const leastParkMs = 1000;
const mostParkMs = 300_000;
/** Milliseconds without a death that reduce the count of deaths in a row by one. */
const calmMs = 600_000;

/**
 * `mostSlates`: number of successive new versions whose record is cleared although the preceding version had one. `slateMs`:
 * milliseconds until one more is allowed.
 */
const mostSlates = 3;
const slateMs = 1_200_000;

/** The record of one function: suspicion, quarantine and parking. It is kept for the life of one version of its code. */
export class CircuitBreaker {
  /** Suspicion by the number of the executor that died. */
  private readonly marks = new Map<number, number>();
  private deaths = 0;
  private row = 0;
  private rowAt = 0;
  private parkedUntil = Number.NEGATIVE_INFINITY;
  private alone: { eventsLeft: number; until: number } | undefined;
  private slates = mostSlates;
  private slateAt = 0;

  /** Number of executors that it ended. */
  get kills(): number {
    return this.deaths;
  }

  /** Whether its record is empty. */
  get isClean(): boolean {
    return this.deaths === 0 && this.marks.size === 0;
  }

  /** Whether it is quarantined: it runs alone, in a separate executor. */
  get isAlone(): boolean {
    return this.alone !== undefined;
  }

  /** Whether it is quarantined until its code changes. */
  get isForGood(): boolean {
    return this.alone?.until === Number.POSITIVE_INFINITY;
  }

  /** Numbers of the executors of whose deaths it is suspected. */
  get cases(): readonly number[] {
    return [...this.marks.keys()];
  }

  /** Milliseconds until it may run again; 0 if it may run now. */
  parkedMs(now: number): number {
    return Math.max(0, this.parkedUntil - now);
  }

  /** Records the death of an executor on which it was loaded. */
  died(executor: number, involvement: Involvement, now: number): void {
    const weight = weights[involvement];
    if (weight === 0) return;
    const before = this.suspicion;
    this.marks.set(executor, Math.max(weight, this.marks.get(executor) ?? 0));
    const term = terms.find(({ suspicion }) => this.suspicion >= suspicion);
    // Being present only counts when it raises suspicion to a new threshold.
    if (term && (weight >= 1 || before < term.suspicion)) this.sentence(term, now);
    if (involvement === "proven" || involvement === "culprit") this.strike(now);
  }

  /** Records the end of an event in its own executor during quarantine. */
  finished(now: number): void {
    if (!this.alone) return;
    this.alone.eventsLeft--;
    if (this.alone.eventsLeft <= 0 && now >= this.alone.until) this.alone = undefined;
  }

  /** Removes the suspicion for an executor's death, because another function is proven to have caused it. */
  clear(executor: number): void {
    if (!this.marks.delete(executor)) return;
    if (this.alone && this.suspicion < 1) this.alone = undefined;
  }

  /** Starts a new version with a cleared record, unless too many versions in a row needed that. */
  renew(now: number): void {
    const grown = Math.floor((now - this.slateAt) / slateMs);
    this.slates = Math.min(mostSlates, this.slates + grown);
    this.slateAt = this.slates === mostSlates ? now : this.slateAt + grown * slateMs;
    if (this.isClean || this.slates === 0) return;
    this.slates--;
    this.marks.clear();
    this.deaths = 0;
    this.row = 0;
    this.parkedUntil = Number.NEGATIVE_INFINITY;
    this.alone = undefined;
  }

  private get suspicion(): number {
    let sum = 0;
    for (const weight of this.marks.values()) sum += weight;
    // Avoids rounding errors: five times 0.2 is 1.
    return Math.round(sum * 10) / 10;
  }

  private sentence({ events, ms }: (typeof terms)[number], now: number): void {
    this.alone = {
      eventsLeft: Math.max(events, this.alone?.eventsLeft ?? 0),
      until: Math.max(now + ms, this.alone?.until ?? 0),
    };
  }

  private strike(now: number): void {
    this.deaths++;
    this.row = Math.max(0, this.row - Math.floor((now - this.rowAt) / calmMs)) + 1;
    this.rowAt = now;
    if (this.row < 2) return;
    this.parkedUntil = now + Math.min(mostParkMs, leastParkMs * 2 ** (this.row - 2));
  }
}
