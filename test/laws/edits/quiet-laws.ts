import type { FunctionManifest, Trigger } from "../../../runtime/manifest/function.ts";
import { digestOf, holds } from "./choices.ts";
import { type Cluster, keyOf, type Revision, selects } from "./cluster.ts";
import type { Identities, Identity, Told } from "./identities.ts";
import type { Law } from "./law-names.ts";

/** A stretch of time in which a manifest was in force, by ticks. */
export interface Span {
  readonly phase: number;
  readonly manifest: FunctionManifest;
  readonly from: number;
  /** `undefined` for the manifest in force. */
  readonly to: number | undefined;
}

export interface QuietParts {
  readonly cluster: Cluster;
  readonly identities: Identities;
  readonly spans: readonly Span[];
  /** The tick since which bodies of known objects are kept. */
  readonly bodiesSince: number;
  readonly report: (law: Law, what: string) => void;
}

/** A trigger in a stretch of time. */
export interface InForce {
  readonly phase: number;
  readonly from: number;
  readonly trigger: Trigger;
  readonly isReconciler: boolean;
}

/** The versions of a trigger that were in force while a process ran, since a tick. */
export function inForceSince(spans: readonly Span[], identity: Identity, tick: number): InForce[] {
  return spans.flatMap(({ phase, manifest, from, to }) => {
    const trigger = identity.triggers.get(phase);
    if (!trigger || (to !== undefined && to < tick)) return [];
    return [{ phase, from, trigger, isReconciler: manifest.delivery.mode === "Reconcile" }];
  });
}

/** Checks a quiet world: each trigger's handler has received what exists, as far as every manifest since wanted it. */
export function checkQuiet(parts: QuietParts): void {
  for (const identity of parts.identities.here) {
    const now = inForceSince(parts.spans, identity, Number.POSITIVE_INFINITY).at(-1);
    // Another law checks which keys ran.
    if (!now || (now.isReconciler && now.trigger.key)) continue;
    const { kind } = now.trigger;
    for (const key of new Set(parts.cluster.log.filter((it) => it.kind === kind).map(keyOf)))
      checkKey(parts, identity, key, now);
  }
}

function checkKey(parts: QuietParts, identity: Identity, key: string, now: InForce): void {
  const real = parts.cluster.here(now.trigger.kind).get(key);
  if (real) checkPresent(parts, identity, real);
  for (const uid of new Set(identity.told.filter((it) => it.key === key && it.uid !== "").map((it) => it.uid)))
    if (uid !== real?.uid) checkGone(parts, identity, key, uid);
  if (real && !selects(now.trigger, real)) checkUnselected(parts, identity, real);
}

function checkPresent({ cluster, spans, report }: QuietParts, identity: Identity, real: Revision): void {
  const past = cluster.log.filter(({ uid, rv }) => uid === real.uid && rv < real.rv);
  const inForce = inForceSince(spans, identity, real.tick);
  const firstThatWants = inForce.findLastIndex((each) => !wants(each, real, past)) + 1;
  const first = inForce[firstThatWants];
  if (!first || inForce.slice(firstThatWants).some(({ isReconciler, trigger }) => isReconciler && trigger.key)) return;
  const before = inForce[firstThatWants - 1];
  const isNewlySelected = before !== undefined && !selects(before.trigger, real);
  if (before && !isNewlySelected) return;
  const skips = [...identity.triggers.values()].some(({ initialEvents }) => initialEvents === "Skip");
  if (skips && real.rv <= identity.initialUpTo) return;
  const last = lastTold(identity, real.uid, keyOf(real));
  if (last?.type === "present" && last.uid === real.uid && last.rv >= real.rv) return;
  const shown = last ? `${last.type} ${last.uid}@${last.rv}` : "nothing";
  const what = `${identity.name}: ${real.kind} ${keyOf(real)} ${real.uid}@${real.rv}, last told: ${shown}`;
  report(isNewlySelected ? "selected" : "lost", what);
}

/** True if a manifest wants a state delivered, regardless of what was known of its object. */
export function wants({ trigger }: InForce, state: Revision, past: readonly Revision[]): boolean {
  const { events, matchConditions, changedFields } = trigger;
  if (!selects(trigger, state) || !events.includes("Added") || !events.includes("Modified")) return false;
  if (!matchConditions.every(({ expression }) => holds(expression, state) === true)) return false;
  if (changedFields.length === 0) return true;
  return past.every((each) => digestOf(changedFields, each) !== digestOf(changedFields, state));
}

/** Checks an object that the handler knows and that is deleted. */
function checkGone({ cluster, spans, report }: QuietParts, identity: Identity, key: string, uid: string): void {
  const told = identity.toldOf(uid).filter(({ ended, mayBeLost }) => ended === "done" && !mayBeLost);
  const present = told.findLast(({ type }) => type === "present");
  const gone = cluster.log.find((it) => it.uid === uid && it.type === "Deleted");
  if (!gone || !present || identity.isToldGone(key, uid, present.tick)) return;
  const inForce = inForceSince(spans, identity, gone.tick);
  if (inForce.some(({ isReconciler, trigger }) => isReconciler && trigger.key)) return;
  if (identity.told.some((it) => it.isRun && it.key === key && it.tick > gone.tick && it.ended === "done")) return;
  const states = cluster.log.filter((it) => it.uid === uid && it.type !== "Deleted" && it.rv >= present.rv);
  // If an earlier edit stopped selecting the object, the conditions of that manifest may have suppressed the deletion.
  const since = inForceSince(spans, identity, present.tick);
  if (since.some(({ trigger }) => states.some((state) => !selects(trigger, state)))) return;
  const isWanted = ({ trigger: { events, matchConditions } }: InForce) =>
    events.includes("Deleted") &&
    matchConditions.every(({ expression }) => states.every((state) => holds(expression, state) === true));
  if (inForce.length === 0 || !inForce.every(isWanted)) return;
  const answers = new Set(
    [...identity.triggers.values()].map(({ matchConditions }) => JSON.stringify(matchConditions)),
  );
  const what = `${identity.name}: ${gone.kind} ${key} ${uid} went @${gone.rv}, last told: present @${present.rv}`;
  report(answers.size > 1 ? "heldBack" : "lostDeletion", what);
}

/** Checks an object that the handler knows and that exists, but is no longer selected. */
function checkUnselected({ cluster, spans, report }: QuietParts, identity: Identity, real: Revision): void {
  const last = lastTold(identity, real.uid, keyOf(real));
  if (last?.type !== "present" || last.uid !== real.uid || last.mayBeLost) return;
  const all = inForceSince(spans, identity, 0);
  const outside = all.slice(all.findLastIndex(({ trigger }) => selects(trigger, real)) + 1);
  const inForce = [...outside, ...inForceSince(spans, identity, real.tick)];
  const isWanted = ({ trigger, isReconciler }: InForce) =>
    trigger.events.includes("Deleted") && trigger.matchConditions.length === 0 && !(isReconciler && trigger.key);
  if (!inForce.every(isWanted)) return;
  // A state in between may have left the selection when no Deleted was wanted; the object was then forgotten.
  const between = cluster.log.filter(({ uid, rv, type }) => uid === real.uid && rv > last.rv && type !== "Deleted");
  const leftUntold = (each: InForce) => !isWanted(each) && between.some((state) => !selects(each.trigger, state));
  if (inForceSince(spans, identity, last.tick).some(leftUntold)) return;
  const past = cluster.log.filter(({ uid }) => uid === real.uid).length;
  report(
    "unselected",
    `${identity.name}: ${keyOf(real)} ${real.uid}@${real.rv} (${past} states), last told: present @${last.rv}`,
  );
}

/** Returns the last delivery of an object, or of its key by a run that saw no object. */
function lastTold(identity: Identity, uid: string, key: string): Told | undefined {
  return identity.told.findLast((it) => it.ended === "done" && it.key === key && (it.uid === uid || it.isRun));
}
