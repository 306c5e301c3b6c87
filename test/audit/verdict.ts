import { type Edit, type Wanted, wantedBy } from "./edits.ts";
import type { Delivery, Fact } from "./ledger.ts";

/**
 * A part of the history, for example a compacted one, of which only net changes are delivered: after `from`, up to and including
 * `to`.
 */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

/**
 * The time in which a stopped process continued and ended, by the order of records: after `from`, up to and including `to`.
 * Everything else was done, so that process wrote all records of this time.
 */
export interface Waking {
  readonly from: number;
  readonly to: number;
}

/** Actions on the runtime while the facts happened; a field that is left out did not happen. */
export interface Course {
  readonly gaps?: readonly Gap[];
  readonly wakings?: readonly Waking[];
  /** Edits of the manifest, in their order. The first manifest asks for everything. */
  readonly edits?: readonly Edit[];
}

/** Result of an audit; each list is empty when the promise was kept. */
export interface Verdict {
  readonly facts: number;
  readonly deliveries: number;
  readonly flagged: number;
  readonly synthetic: number;
  /** Deliveries that report that an edit of the manifest selected or deselected the object. */
  readonly reselected: number;
  /**
   * Deliveries that a stopped process was writing when it was stopped: one per process, which no check of a Lease can prevent.
   */
  readonly amidWriting: number;
  /**
   * Changes that had to be delivered and were not: each one outside a gap, and the net change of each object across a gap.
   * Changes that
   * an edit of the manifest selects or releases count as well.
   */
  readonly missed: readonly string[];
  /** States of an object that were delivered again without a flag, and ids that were used twice. */
  readonly unflagged: readonly string[];
  /** First deliveries that came after a later state of the object. */
  readonly disordered: readonly string[];
  /** Deliveries of states that never existed. */
  readonly invented: readonly string[];
  /** Deliveries that no manifest in force wanted, and those of a newly selected object without that flag. */
  readonly unwanted: readonly string[];
}

/** State that stands for an object's deletion. */
const deleted = "@deleted";

/** One state of an object. A deletion counts once, whatever the resourceVersion of its event. */
const stateOf = (change: Pick<Fact, "uid" | "type" | "resourceVersion">) =>
  `${change.uid}${change.type === "Deleted" ? deleted : `@${change.resourceVersion}`}`;

/** Compares the facts with the handler's records. `deliveries` are in the order of the records. */
export function judge(facts: readonly Fact[], deliveries: readonly Delivery[], course: Course = {}): Verdict {
  const { wakings = [] } = course;
  const manifests = new Manifests(course.edits ?? []);
  const happened = new Map(facts.map((fact) => [stateOf(fact), fact]));
  const objects = historiesOf(facts);

  const stateOfId = new Map<string, string>();
  const lives = new Map<string, Life>();
  const latest = new Map<string, number>();
  const unflagged: Delivery[] = [];
  const disordered: Delivery[] = [];
  const invented: Delivery[] = [];
  const unwanted: Delivery[] = [];
  const woken = new Set<Waking>();
  for (const delivery of deliveries) {
    const { id, uid, name, type } = delivery;
    const state = stateOf(delivery);
    const known = stateOfId.get(id);
    stateOfId.set(id, known ?? state);
    const life = lives.get(uid) ?? new Life();
    lives.set(uid, life);
    if (known !== undefined || life.holds(state)) {
      if (delivery.flagged && (known ?? state) === state) continue;
      const waking = wakings.find(({ from, to }) => delivery.writtenAt > from && delivery.writtenAt <= to);
      if (waking && !woken.has(waking)) woken.add(waking);
      else unflagged.push(delivery);
      continue;
    }
    if (life.released && type !== "Added") disordered.push(delivery);
    life.take(state, delivery);
    if (type === "Deleted" && delivery.reason === "unselected" && manifests.letGo(name)) continue;
    const fact = happened.get(state);
    if (!fact) {
      invented.push(delivery);
      continue;
    }
    if (!manifests.want(delivery, fact, objects.get(uid) ?? [])) unwanted.push(delivery);
    // By name, not by uid: an object that was deleted ends before another one with its name begins.
    if (fact.resourceVersion < (latest.get(name) ?? 0)) disordered.push(delivery);
    latest.set(name, Math.max(fact.resourceVersion, latest.get(name) ?? 0));
  }

  const toldOf = (uid: string) => lives.get(uid) ?? new Life();
  const due = required(facts, toldOf, [...(course.gaps ?? []), ...manifests.reselections], manifests);
  const missed = due.filter((fact) => !toldOf(fact.uid).held(stateOf(fact)));
  const reselected = reselections(objects, new Set(due), toldOf, manifests);
  return {
    facts: facts.length,
    deliveries: deliveries.length,
    flagged: deliveries.filter((delivery) => delivery.flagged).length,
    synthetic: deliveries.filter((delivery) => delivery.synthetic).length,
    reselected: deliveries.filter(({ reason }) => reason === "selected" || reason === "unselected").length,
    amidWriting: woken.size,
    missed: [...inWords(missed), ...reselected.missed],
    unflagged: inWords(unflagged),
    disordered: inWords(disordered),
    invented: [...inWords(invented), ...reselected.invented],
    unwanted: inWords(unwanted),
  };
}

const inWords = (list: readonly (Fact | Delivery)[]): string[] =>
  list.map((item) => `${item.name} ${item.type} ${item.resourceVersion} (${item.uid})`);

/**
 * First deliveries of one object. An edit that releases the object ends its life, and an edit that selects it begins another.
 */
class Life {
  private readonly all = new Set<string>();
  private now = new Set<string>();
  /** True if an edit deselected the object, and no later edit selected it again. */
  released = false;
  ends = 0;
  selections = 0;

  get begun(): boolean {
    return this.all.size > 0;
  }

  /** True if the state was delivered in this life. */
  holds(state: string): boolean {
    return this.now.has(state) && (!this.released || state.endsWith(deleted));
  }

  /** True if the state was delivered in any life. */
  held(state: string): boolean {
    return this.all.has(state);
  }

  /** Records a first delivery. */
  take(state: string, { type, reason }: Delivery): void {
    if (this.released) this.now = new Set();
    this.released = type === "Deleted" && reason === "unselected";
    if (type === "Deleted") this.ends++;
    if (reason === "selected") this.selections++;
    this.now.add(state);
    this.all.add(state);
  }
}

/** The facts of each object, in order. */
function historiesOf(facts: readonly Fact[]): ReadonlyMap<string, readonly Fact[]> {
  const found = new Map<string, Fact[]>();
  for (const fact of facts) {
    const history = found.get(fact.uid) ?? [];
    history.push(fact);
    found.set(fact.uid, history);
  }
  return found;
}

/** All manifests of a run. During an edit, either of two manifests may apply. */
class Manifests {
  private readonly all: readonly Edit[];
  /**
   * Edits whose selection differs from the previous manifest's, each with that manifest. The objects are listed again, so only
   * net
   * changes are delivered.
   */
  readonly reselections: readonly (Edit & { readonly before: Wanted })[];

  constructor(edits: readonly Edit[]) {
    this.all = [{ from: -1, to: -1, wanted: wantedBy() }, ...edits];
    this.reselections = edits.flatMap((edit, index) => {
      const before = this.all[index]?.wanted;
      return before && before.selects !== edit.wanted.selects ? [{ ...edit, before }] : [];
    });
  }

  /** The manifests that may have applied between two moments, or at one moment. */
  private during(from: number, to = from): Wanted[] {
    const counts = (index: number) =>
      (this.all[index]?.from ?? 0) < to && from <= (this.all[index + 1]?.to ?? Infinity);
    return this.all.flatMap(({ wanted }, index) => (counts(index) ? [wanted] : []));
  }

  /** The next manifest. */
  private after(counted: readonly Wanted[]): Wanted[] {
    const next = this.all[this.all.findLastIndex(({ wanted }) => counted.includes(wanted)) + 1];
    return next ? [next.wanted] : [];
  }

  /** True if every manifest that may have applied wants the change. */
  require({ name, type, resourceVersion }: Fact): boolean {
    return this.during(resourceVersion).every((each) => each.selects(name) && each.takes({ name, type }));
  }

  /**
   * Whether one of the manifests asks for what was delivered: when it happened, or, for a state that a list shows, for as long as
   * it
   * lasted. An object that was not selected at that time must be flagged as selected by now. A change that was refused shortly
   * before
   * a kill may be judged again, by the next process's manifest, because the checkpoint is saved every few seconds.
   */
  want({ name, type, synthetic, reason }: Delivery, fact: Fact, history: readonly Fact[]): boolean {
    const next = history[history.indexOf(fact) + 1]?.resourceVersion ?? Infinity;
    const then = this.during(fact.resourceVersion);
    if (!then.some((each) => each.selects(name)) && reason !== "selected") return false;
    const counted = synthetic ? this.during(fact.resourceVersion, next) : [...then, ...this.after(then)];
    return counted.some((each) => each.selects(name) && each.takes({ name, type }));
  }

  /** True if an edit deselects the objects of a name. */
  letGo(name: string): boolean {
    return this.reselections.some(({ before, wanted }) => before.selects(name) && !wanted.selects(name));
  }
}

type ToldOf = (uid: string) => Life;

/** The changes that must each be delivered. */
function required(facts: readonly Fact[], toldOf: ToldOf, gaps: readonly Gap[], manifests: Manifests): Fact[] {
  const required: Fact[] = [];
  const inside = gaps.map(() => new Map<string, Fact>());
  for (const fact of facts) {
    const gap = gaps.findIndex(({ from, to }) => fact.resourceVersion > from && fact.resourceVersion <= to);
    if (gap === -1) required.push(fact);
    else inside[gap]?.set(fact.uid, fact); // the last one stands
  }
  const bornAt = new Map<string, number>();
  for (const fact of facts) if (fact.type === "Added") bornAt.set(fact.uid, fact.resourceVersion);
  for (const [index, last] of inside.entries()) {
    for (const fact of last.values()) {
      // An object that was created and deleted within the gap has no net change, unless the handler received it.
      const born = bornAt.get(fact.uid);
      const unseen = born !== undefined && born > (gaps[index]?.from ?? 0) && !toldOf(fact.uid).begun;
      if (fact.type !== "Deleted" || !unseen) required.push(fact);
    }
  }
  return required.filter((fact) => manifests.require(fact));
}

/**
 * Changes that edits select or release: those not delivered, and those delivered too often. A deletion also counts as an end.
 */
function reselections(
  objects: ReadonlyMap<string, readonly Fact[]>,
  due: ReadonlySet<Fact>,
  toldOf: ToldOf,
  manifests: Manifests,
): { missed: string[]; invented: string[] } {
  const [missed, invented]: [string[], string[]] = [[], []];
  if (manifests.reselections.length === 0) return { missed, invented };
  for (const [uid, history] of objects) {
    const name = history[0]?.name ?? "";
    const deletion = history.find(({ type }) => type === "Deleted");
    let selections = 0;
    let ends = deletion && due.has(deletion) ? 1 : 0;
    let possible = deletion ? 1 : 0;
    for (const { from, to, before, wanted } of manifests.reselections) {
      const selects = !before.selects(name) && wanted.selects(name);
      const letsGo = before.selects(name) && !wanted.selects(name);
      const until = (moment: number) => history.filter(({ resourceVersion }) => resourceVersion <= moment);
      if (letsGo && until(to).length > 0) possible++;
      const stood = until(from);
      if (stood.length === 0 || stood.at(-1)?.type === "Deleted") continue;
      if (selects && until(to).at(-1)?.type !== "Deleted") selections++;
      if (letsGo && stood.some((fact) => due.has(fact))) ends++;
    }
    const told = toldOf(uid);
    if (told.selections < selections)
      missed.push(`${name} selected, ${told.selections} of ${selections} times (${uid})`);
    if (told.ends < ends) missed.push(`${name} let go, ${told.ends} of ${ends} times (${uid})`);
    if (told.ends > possible) invented.push(`${name} let go, ${told.ends} times for ${possible} (${uid})`);
  }
  return { missed, invented };
}
