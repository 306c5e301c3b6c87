import { parseDuration } from "@watchfire/sdk";
import { type ExpressionChecker, field, type RuleFault, text } from "./rule-fault.ts";

const invalid = "WF_MANIFEST_INVALID_VALUE";

/** Shortest resync interval, in milliseconds, as for a schedule. With a shorter one, keys would run without pause. */
const shortestResyncMs = 1_000;

/** Checks `mode: Reconcile`, and the fields that are only valid with it. Ignores values of the wrong shape. */
export function* reconcileFaults(
  triggers: readonly unknown[],
  delivery: unknown,
  checkExpression?: ExpressionChecker,
): Generator<RuleFault> {
  for (const [index, trigger] of triggers.entries()) {
    const path = ["spec", "triggers", index, "key"];
    yield* keyFaults(field(trigger, "key"), field(trigger, "watch"), path, checkExpression);
  }
  const resyncMs = parseDuration(text(field(delivery, "resync")) ?? "");
  if (resyncMs !== undefined && resyncMs < shortestResyncMs)
    yield { code: invalid, path: ["spec", "delivery", "resync"], what: "expected at least 1s" };
  if (field(delivery, "shardBy") === "Namespace" && triggers.some((each) => field(each, "key") !== undefined)) {
    yield {
      code: invalid,
      path: ["spec", "delivery", "shardBy"],
      what: "a trigger's `key` may run an object in a namespace that the trigger does not watch, or without a namespace",
      hint: "leave shardBy out: the keys are then spread by their names",
    };
  }
  if (field(delivery, "mode") === "Reconcile") yield* primaryFaults(triggers);
  else yield* strayFaults(triggers, delivery);
}

function* keyFaults(
  key: unknown,
  watch: unknown,
  path: RuleFault["path"],
  checkExpression?: ExpressionChecker,
): Generator<RuleFault> {
  if (key === undefined) return;
  if (watch === undefined) {
    yield {
      code: invalid,
      path,
      what: "a schedule has no object from which a key could be computed",
      hint: "remove the key: a schedule wakes every key",
    };
    return;
  }
  const expression = text(field(key, "expression"));
  if (["owner", "expression", "all"].filter((name) => field(key, name) !== undefined).length !== 1) {
    yield { code: invalid, path, what: "expected exactly one of owner, expression and all" };
  }
  const isPartial = field(watch, "object") === "Metadata" || field(watch, "lastBody") === "Metadata";
  const fault = expression && checkExpression?.(expression, isPartial ? "Metadata" : "Full", "key");
  if (fault) yield { code: "WF_MANIFEST_EXPRESSION", path: [...path, "expression"], what: fault };
}

/** Checks the trigger without `key`, which determines the kind of `object` and keeps its state. */
function* primaryFaults(triggers: readonly unknown[]): Generator<RuleFault> {
  const primaries = [...triggers.keys()].filter((index) => isPrimary(triggers[index]));
  const [first, second] = primaries;
  if (first === undefined) {
    yield {
      code: invalid,
      path: ["spec", "triggers"],
      what: "every trigger has a `key`, so no trigger says which kind is reconciled",
      hint: "add a trigger without `key` that watches the kind that the handler's `object` is of",
    };
    return;
  }
  if (second !== undefined) {
    yield {
      code: invalid,
      path: ["spec", "triggers", second],
      what: "an earlier trigger has no `key` either, and the handler's `object` can be of only one trigger",
      hint: "give one of them a `key`, or make it a separate function",
    };
    return;
  }
  const watch = field(triggers[first], "watch");
  if (field(watch, "lastBody") === "Metadata" && field(watch, "object") !== "Metadata") {
    yield {
      code: invalid,
      path: ["spec", "triggers", first, "watch", "lastBody"],
      what: "the handler's `object` is the stored state of this trigger's objects",
      hint: "leave lastBody out, or set `object: Metadata` if the handler needs no more",
    };
  }
  for (const [index, trigger] of triggers.entries()) {
    const owner = field(field(trigger, "key"), "owner");
    if (owner === undefined || isSameKind(owner, watch)) continue;
    yield {
      code: invalid,
      path: ["spec", "triggers", index, "key", "owner"],
      what: `owners of kind ${text(field(owner, "kind"))} are not keys: this function reconciles ${text(field(watch, "kind"))}`,
      hint: "name the kind of the trigger without `key`",
    };
  }
}

/** Finds `key` and `resync` outside of their mode. */
function* strayFaults(triggers: readonly unknown[], delivery: unknown): Generator<RuleFault> {
  const mode = text(field(delivery, "mode")) ?? "All";
  if (mode !== "All" && mode !== "Latest") return;
  for (const [index, trigger] of triggers.entries()) {
    if (field(trigger, "key") === undefined || field(trigger, "watch") === undefined) continue;
    yield {
      code: invalid,
      path: ["spec", "triggers", index, "key"],
      what: `in mode ${mode} the handler receives each change of an object, so a key has no effect`,
      hint: "set `delivery.mode: Reconcile`, or remove the key",
    };
  }
  if (field(delivery, "resync") === undefined) return;
  yield {
    code: invalid,
    path: ["spec", "delivery", "resync"],
    what: `in mode ${mode} the handler receives changes only, so a resync has no effect`,
    hint: "set `delivery.mode: Reconcile`, or remove resync",
  };
}

const isPrimary = (trigger: unknown): boolean =>
  field(trigger, "key") === undefined && field(trigger, "watch") !== undefined;

/** Compares kinds, whatever version either names. Values of the wrong shape are reported elsewhere. */
function isSameKind(owner: unknown, watch: unknown): boolean {
  const [kind, other] = [text(field(owner, "kind")), text(field(watch, "kind"))];
  const [version, otherVersion] = [text(field(owner, "apiVersion")), text(field(watch, "apiVersion"))];
  if (kind === undefined || other === undefined || version === undefined || otherVersion === undefined) return true;
  return kind === other && groupOf(version) === groupOf(otherVersion);
}

const groupOf = (apiVersion: string): string => apiVersion.slice(0, Math.max(0, apiVersion.indexOf("/")));
