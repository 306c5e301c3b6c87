import type { KeyRule } from "../../../runtime/manifest/function.ts";
import { expressionNames } from "./choices.ts";
import { type Revision, selects } from "./cluster.ts";
import type { Base, Identity } from "./identities.ts";
import { type InForce, inForceSince, type QuietParts } from "./quiet-laws.ts";

/** The keys that an object wakes. */
export function keysBy(rule: KeyRule, state: Revision): string[] {
  const owners = state.owner ? [state.owner] : [];
  const names = rule.type === "expression" ? expressionNames(rule.expression, state) : owners;
  return names.map((name) => `${state.namespace}/${name}`);
}

/**
 * Checks a quiet world: every key that an object woke before, or wakes now, has run since. The next check starts from here.
 */
export function checkKeys(parts: QuietParts, phase: number, tick: number): void {
  const { identities, cluster, spans } = parts;
  for (const identity of identities.here) {
    const now = inForceSince(spans, identity, Number.POSITIVE_INFINITY).at(-1);
    if (identity.base && now?.isReconciler && now.trigger.key) checkSince(parts, identity, identity.base, now);
    const isFollowed = now?.isReconciler && isWide(now);
    const states = [...cluster.here(now?.trigger.kind ?? "")].filter(([, it]) => now && selects(now.trigger, it));
    identity.base = isFollowed ? { phase, tick, states: new Map(states) } : undefined;
  }
}

/** True if every change of the selected objects wakes keys. */
const isWide = ({ trigger: { key, events, matchConditions, changedFields } }: InForce): boolean =>
  key !== undefined && events.length === 3 && matchConditions.length === 0 && changedFields.length === 0;

function checkSince(parts: QuietParts, identity: Identity, base: Base, now: InForce): void {
  const all = inForceSince(parts.spans, identity, base.tick);
  const wasFollowed = all[0];
  if (!wasFollowed || !all.every((each) => each.isReconciler && isWide(each))) return;
  const { key: ruleBefore } = wasFollowed.trigger;
  const { key: rule, kind } = now.trigger;
  if (!ruleBefore || !rule || kind !== wasFollowed.trigger.kind) return;
  const isEdited = new Set(all.map(({ trigger }) => JSON.stringify(trigger.key))).size > 1;
  const here = parts.cluster.here(kind);
  /** Every rule that may have handled a change in that time. An edit wakes no additional keys for it. */
  const rulesSince = (tick: number, upTo = Number.POSITIVE_INFINITY): KeyRule[] =>
    inForceSince(parts.spans, identity, tick).flatMap(({ from, trigger }) =>
      from <= upTo && trigger.key ? trigger.key : [],
    );
  for (const [at, before] of base.states) {
    const real = here.get(at);
    const isHere = real?.uid === before.uid && all.every(({ trigger }) => selects(trigger, real));
    const leftBy = (named: KeyRule) =>
      keysBy(named, before)
        .filter((key) => !isHere || !keysBy(named, real).includes(key))
        .map((key) => ({ key, since: leftAt(parts, all, isEdited ? undefined : named, before, key) }));
    const why = `${before.kind} ${at} ${before.uid}@${before.rv} left it`;
    const allowed = rulesSince(before.tick, base.tick).map(leftBy);
    if (isUnruled(parts, identity, before, base)) {
      const isForgotten = before.tick < parts.bodiesSince;
      allowed.push(leftBy(rule).filter(({ key }) => !isForgotten || hasObject(parts, key)));
    }
    checkRuns(parts, allowed, leftBy(ruleBefore), why, isEdited);
  }
  for (const [at, real] of here) {
    const isSame = base.states.get(at)?.rv === real.rv;
    if (isSame || real.tick < base.tick || !all.every(({ trigger }) => selects(trigger, real))) continue;
    const comeTo = (named: KeyRule) => keysBy(named, real).map((key) => ({ key, since: real.tick }));
    const why = `${real.kind} ${at} ${real.uid}@${real.rv} counts for it`;
    checkRuns(parts, rulesSince(real.tick).map(comeTo), comeTo(rule), why, isEdited);
  }
}

/**
 * Whether the last change of an object may have been handled while no rule was in force. In that case no key is recorded with the
 * object, as the guide says, and its next change wakes the keys of its last body by the rule of that time. If that body is gone,
 * the change wakes every key that has an object.
 */
function isUnruled({ spans }: QuietParts, identity: Identity, { tick }: Revision, base: Base): boolean {
  const since = inForceSince(spans, identity, tick).filter(({ from }) => from <= base.tick);
  return since.some(({ isReconciler, trigger }) => !isReconciler || !trigger.key);
}

/** True if there is an object that is reconciled under a key. */
function hasObject({ identities, spans, cluster }: QuietParts, key: string): boolean {
  return [...identities.here].some((identity) => {
    const now = inForceSince(spans, identity, Number.POSITIVE_INFINITY).at(-1);
    const real = now && !now.trigger.key ? cluster.here(now.trigger.kind).get(key) : undefined;
    return now !== undefined && real !== undefined && selects(now.trigger, real);
  });
}

/**
 * The tick since which an object no longer wakes a key: its change, or the edit that deselected it. If an edit changed the key's
 * rule, the object's next change is the last that wakes the key.
 */
function leftAt(
  { cluster }: QuietParts,
  all: readonly InForce[],
  rule: KeyRule | undefined,
  before: Revision,
  key: string,
): number {
  const since = cluster.log.filter((it) => it.uid === before.uid && it.rv > before.rv);
  const changed = since.find((it) => !rule || it.type === "Deleted" || !keysBy(rule, it).includes(key));
  const unselected = since.find((it) => all.some(({ trigger }) => !selects(trigger, it)));
  const byEdit = all.find(({ trigger }) => !selects(trigger, before));
  return Math.min(changed?.tick ?? Infinity, unselected?.tick ?? Infinity, byEdit?.from ?? Infinity);
}

/** A key that must have run since a tick. */
interface Due {
  readonly key: string;
  readonly since: number;
}

/** @param allowed any one of these will do; `due` is what is reported */
function checkRuns(
  { identities, report }: QuietParts,
  allowed: readonly (readonly Due[])[],
  due: readonly Due[],
  why: string,
  isEdited: boolean,
): void {
  const runs = [...identities.all].flatMap(({ told }) => told).filter(({ isRun, ended }) => isRun && ended === "done");
  const hasRun = ({ key, since }: Due) => runs.some((it) => it.key === key && it.tick > since);
  if ([...allowed, due].some((each) => each.every(hasRun))) return;
  for (const { key } of due.filter((each) => !hasRun(each)))
    report(isEdited ? "wokenByEdit" : "woken", `${key} was not run since: ${why}`);
}
