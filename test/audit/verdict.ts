import type { Delivery, Fact } from "./ledger.ts";

/** A stretch of history that was compacted while the runtime was down: after `from`, up to and including `to`. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

/**
 * The time in which a process that had been stopped went on and ended, by what was written: after `from`, up to and including
 * `to`. All else was done, so whatever was written then, it wrote.
 */
export interface Waking {
  readonly from: number;
  readonly to: number;
}

/** What the auditor found; each list is empty when the promise was kept. */
export interface Verdict {
  readonly facts: number;
  readonly deliveries: number;
  readonly flagged: number;
  readonly synthetic: number;
  /** Deliveries that a stopped process was writing when it was stopped: one for each, which no look at a Lease can keep back. */
  readonly amidWriting: number;
  /** Changes that had to be delivered and were not: each one outside a gap, the net change of each object across a gap. */
  readonly missed: readonly string[];
  /** A state of an object that was delivered again and did not say so. */
  readonly unflagged: readonly string[];
  /** Deliveries that came, for the first time, after a later state of the object. */
  readonly disordered: readonly string[];
  /** Deliveries of what never happened. */
  readonly invented: readonly string[];
}

/** One state of one object: a deletion happens once, whatever resourceVersion the event of it has. */
const stateOf = (change: Pick<Fact, "uid" | "type" | "resourceVersion">) =>
  `${change.uid}@${change.type === "Deleted" ? "deleted" : change.resourceVersion}`;

/** Compares what happened with what the handler wrote down. `deliveries` are in the order they were written. */
export function judge(
  facts: readonly Fact[],
  deliveries: readonly Delivery[],
  gaps: readonly Gap[],
  wakings: readonly Waking[] = [],
): Verdict {
  const happened = new Map(facts.map((fact) => [stateOf(fact), fact]));
  const told = (list: readonly (Fact | Delivery)[]) =>
    list.map((item) => `${item.name} ${item.type} ${item.resourceVersion} (${item.uid})`);

  const seen = new Set<string>();
  const latest = new Map<string, number>();
  const [unflagged, disordered, invented]: Delivery[][] = [[], [], []];
  const woken = new Set<Waking>();
  for (const delivery of deliveries) {
    const state = stateOf(delivery);
    const fact = happened.get(state);
    if (!fact) {
      invented?.push(delivery);
    } else if (seen.has(state)) {
      if (delivery.flagged) continue;
      const waking = wakings.find(({ from, to }) => delivery.writtenAt > from && delivery.writtenAt <= to);
      if (waking && !woken.has(waking)) woken.add(waking);
      else unflagged?.push(delivery);
    } else {
      seen.add(state);
      // By name, not by uid: an object that was deleted is over before another of its name begins.
      if (fact.resourceVersion < (latest.get(fact.name) ?? 0)) disordered?.push(delivery);
      latest.set(fact.name, Math.max(fact.resourceVersion, latest.get(fact.name) ?? 0));
    }
  }

  return {
    facts: facts.length,
    deliveries: deliveries.length,
    flagged: deliveries.filter((delivery) => delivery.flagged).length,
    synthetic: deliveries.filter((delivery) => delivery.synthetic).length,
    amidWriting: woken.size,
    missed: told(required(facts, deliveries, gaps).filter((fact) => !seen.has(stateOf(fact)))),
    unflagged: told(unflagged ?? []),
    disordered: told(disordered ?? []),
    invented: told(invented ?? []),
  };
}

/** The changes of which each must be delivered. */
function required(facts: readonly Fact[], deliveries: readonly Delivery[], gaps: readonly Gap[]): Fact[] {
  const met = new Set(deliveries.map((delivery) => delivery.uid));
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
      // An object that came and went within the gap left no net change, unless the handler met it all the same.
      const born = bornAt.get(fact.uid);
      const unseen = born !== undefined && born > (gaps[index]?.from ?? 0) && !met.has(fact.uid);
      if (fact.type !== "Deleted" || !unseen) required.push(fact);
    }
  }
  return required;
}
