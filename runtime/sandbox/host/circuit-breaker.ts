// Whose doing an executor's death was, and what becomes of a function by it. Pure: time comes with each call.
import type { DeathReason } from "./executor-process.ts";

/**
 * How a function stands to its executor's death. `proven`: it had the executor to itself. `culprit`: its code alone was
 * inside. `suspect`: it was inside with others, or of memory that nobody counts. `present`: its code had run there
 * before, and of that memory some may be its own.
 */
export type Involvement = "proven" | "culprit" | "suspect" | "present" | "bystander";

/** What is known of an executor at its death. Functions go by the numbers that they have there. */
export interface Scene {
  readonly reason: DeathReason;
  readonly tenants: readonly number[];
  /** Those whose code has run there. */
  readonly ran: ReadonlySet<number>;
  /** Entries at that moment; `isOver`: it broke a limit and was told of, but its thread had not stopped. */
  readonly inside: readonly { readonly tenant: number; readonly ms: number; readonly isOver: boolean }[];
  /** In whose name something was said that no guest can say, or that could not be handled. */
  readonly blamed: number | undefined;
  /** Whether it ended itself, and has told whose doing it was. */
  readonly wasDoomed: boolean;
}

/** Milliseconds inside an entry that make a function suspect; others were merely passing. */
const suspectMs = 20;

/** Who was inside: those over a limit, or else those that had been there for long, or else all. */
function suspects(inside: Scene["inside"]): number[] {
  const over = inside.filter(({ isOver }) => isOver);
  const long = inside.filter(({ ms }) => ms >= suspectMs);
  const most = over.length > 0 ? over : long.length > 0 ? long : inside;
  return [...new Set(most.map(({ tenant }) => tenant))];
}

/** How far each of an executor's functions is involved in its death. At most one is charged, and none that was not inside, or there, alone. */
export function involvementsOf(scene: Scene): ReadonlyMap<number, Involvement> {
  const { reason, tenants, ran, inside, blamed, wasDoomed } = scene;
  const involvements = new Map<number, Involvement>(tenants.map((id) => [id, "bystander"]));
  if (reason === "closed" || wasDoomed) return involvements;
  const isShared = tenants.length > 1;
  const sure = isShared ? "culprit" : "proven";
  if (blamed !== undefined) return involvements.set(blamed, sure);
  const names = suspects(inside);
  // Memory that nobody counts, such as that of formatters, may be another's who left it before.
  const isUncounted = reason === "memory" && isShared && !inside.some(({ isOver }) => isOver);
  if (isUncounted) for (const id of tenants) if (ran.has(id)) involvements.set(id, "present");
  if (reason === "memory" && !isShared) for (const id of tenants) involvements.set(id, sure);
  for (const id of names) involvements.set(id, names.length === 1 && !isUncounted ? sure : "suspect");
  return involvements;
}

/** Suspicion that a death leaves on a function. */
const weights: Readonly<Record<Involvement, number>> = {
  proven: 2,
  culprit: 2,
  suspect: 1,
  present: 0.2,
  bystander: 0,
};

/**
 * How long a function runs alone from so much suspicion on: events that it finishes, and milliseconds, both. So a patient one
 * gets back among the others twice, and from the third time on stays alone until its code changes.
 */
const terms = [
  { suspicion: 3, events: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY },
  { suspicion: 2, events: 200, ms: 3_600_000 },
  { suspicion: 1, events: 20, ms: 60_000 },
];

/** Milliseconds that a function stands still after its second death in a row, doubling with each to the most. */
const leastParkMs = 1000;
const mostParkMs = 300_000;
/** Milliseconds without a death that take one off its row. */
const calmMs = 600_000;

/**
 * `mostSlates`: new versions in a row that begin with a clean slate though the one before did not leave one. `slateMs`:
 * milliseconds until there is one more.
 */
const mostSlates = 3;
const slateMs = 1_200_000;

/** What a function has to answer for, over the life of one version of its code. */
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

  /** Executors that it brought down. */
  get kills(): number {
    return this.deaths;
  }

  /** Whether it has nothing to answer for. */
  get isClean(): boolean {
    return this.deaths === 0 && this.marks.size === 0;
  }

  /** Whether it runs alone, in an executor of its own. */
  get isAlone(): boolean {
    return this.alone !== undefined;
  }

  /** Whether it does so until its code changes. */
  get isForGood(): boolean {
    return this.alone?.until === Number.POSITIVE_INFINITY;
  }

  /** The executors' numbers of whose deaths it is suspected. */
  get cases(): readonly number[] {
    return [...this.marks.keys()];
  }

  /** Milliseconds until it may run again; 0 where it may. */
  parkedMs(now: number): number {
    return Math.max(0, this.parkedUntil - now);
  }

  /** The executor of that number died while it was there. */
  died(executor: number, involvement: Involvement, now: number): void {
    const weight = weights[involvement];
    if (weight === 0) return;
    const before = this.suspicion;
    this.marks.set(executor, Math.max(weight, this.marks.get(executor) ?? 0));
    const term = terms.find(({ suspicion }) => this.suspicion >= suspicion);
    // Presence alone counts where it adds up.
    if (term && (weight >= 1 || before < term.suspicion)) this.sentence(term, now);
    if (involvement === "proven" || involvement === "culprit") this.strike(now);
  }

  /** An event of it ended in the executor of its own. */
  finished(now: number): void {
    if (!this.alone) return;
    this.alone.eventsLeft--;
    if (this.alone.eventsLeft <= 0 && now >= this.alone.until) this.alone = undefined;
  }

  /** Another is proven to have brought that executor down. */
  clear(executor: number): void {
    if (!this.marks.delete(executor)) return;
    if (this.alone && this.suspicion < 1) this.alone = undefined;
  }

  /** A new version of its code: it begins with a clean slate, but for one that wears out too many. */
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
    // Five fifths are one.
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
