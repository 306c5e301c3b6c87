import type { FunctionReport } from "../control/function-status/function-report.ts";
import type { FunctionManifest, KeyRule, NamespaceScope, Trigger } from "../manifest/function.ts";
import { scheduleText } from "../manifest/schedule.ts";
import type { EventOutcomes } from "../observe/metrics.ts";
import type { TriggerWay } from "./schemas.ts";

type Step = Omit<TriggerWay["steps"][number], "passed">;

/** Reasons that belong to no rule of the manifest. They are shown once an event was held back by them. */
const otherReasons = {
  lastAnswer: ["deletion", "of an object that did not match when it was last seen"],
  gone: ["waiting", "its object is gone: the deletion is delivered instead"],
  unselected: ["waiting", "its object is no longer selected, after an edit"],
  backlog: ["waiting", "replaced by a newer event of its object"],
} as const;

/** Describes the way of an event to the handler, for each trigger, with how many events each step held back. */
export function eventWays(
  manifest: FunctionManifest,
  filtered: FunctionReport["filtered"] = [],
  outcomes: readonly EventOutcomes[] = [],
): TriggerWay[] {
  const handler = handlerStep(manifest);
  const watches = manifest.triggers.map((trigger) => {
    const held = (why: readonly string[], condition?: string) =>
      sum(
        filtered.filter(
          (each) => each.trigger === trigger.name && why.includes(each.why) && each.condition === condition,
        ),
      );
    return { trigger: trigger.name, steps: [...stepsOf(trigger, held), ...otherSteps(held), handler] };
  });
  const schedules = manifest.schedules.map((schedule) => ({
    trigger: schedule.name,
    steps: [{ name: "schedule", rule: scheduleText(schedule) }, handler],
  }));
  return [...watches, ...schedules].map(({ trigger, steps }) => {
    const counts = countsOf(trigger, outcomes);
    return { trigger, steps: withPassed(steps, counts), outcomes: counts };
  });
}

/**
 * Adds how many events have passed each step. Those that the last step passed are all that were not filtered. Events that were
 * filtered before the function was last loaded are in no step.
 */
function withPassed(steps: readonly Step[], { received, filtered }: TriggerWay["outcomes"]): TriggerWay["steps"] {
  let passed = received - filtered + steps.reduce((total, { heldBack = 0 }) => total + heldBack, 0);
  return steps.map((step) => {
    passed -= step.heldBack ?? 0;
    return { ...step, passed };
  });
}

/** The steps that are in no manifest, as far as they held something back. */
function otherSteps(held: (why: readonly string[]) => number): Step[] {
  return Object.entries(otherReasons).flatMap(([why, [name, rule]]) => {
    const heldBack = held([why]);
    return heldBack === 0 ? [] : [{ name, rule, heldBack }];
  });
}

/** The steps in the order in which they are applied; those that the API server applies have no counts. */
function stepsOf(trigger: Trigger, held: (why: readonly string[], condition?: string) => number): Step[] {
  const { apiVersion, kind, labelSelector, fieldSelector, events, changedFields, key } = trigger;
  return [
    { name: "kind", rule: `${apiVersion} ${kind}` },
    { name: "namespaces", rule: namespacesText(trigger.namespaces) },
    ...(labelSelector === "" ? [] : [{ name: "labelSelector", rule: labelSelector }]),
    ...(fieldSelector === "" ? [] : [{ name: "fieldSelector", rule: fieldSelector }]),
    { name: "events", rule: events.join(", "), heldBack: held(["events", "initialEvents"]) },
    ...(changedFields.length === 0
      ? []
      : [
          {
            name: "changedFields",
            rule: changedFields.map((path) => `.${path.join(".")}`).join(", "),
            heldBack: held(["changedFields"]),
          },
        ]),
    ...trigger.matchConditions.map(({ name, expression }) => ({
      name: `condition ${name}`,
      rule: expression,
      heldBack: held(["condition", "conditionError"], name),
    })),
    ...(key === undefined
      ? []
      : [
          {
            name: "key",
            rule: keyWords(key),
            heldBack: held(["key", "keyError"]),
          },
        ]),
  ];
}

function namespacesText(scope: NamespaceScope): string {
  switch (scope.type) {
    case "all":
      return "all";
    case "names":
      return scope.names.join(", ");
    case "labels":
      return `labels ${scope.labelSelector}`;
  }
}

function handlerStep({ delivery }: FunctionManifest): Step {
  const { mode, concurrency, timeoutMs, retry, onFailure } = delivery;
  const rule = `mode ${mode}, ${concurrency} at once, ${timeoutMs / 1000} s, ${retry.maxAttempts} ${retry.maxAttempts === 1 ? "attempt" : "attempts"}, then ${onFailure}`;
  return { name: "handler", rule };
}

function countsOf(trigger: string, all: readonly EventOutcomes[]): TriggerWay["outcomes"] {
  const of = (...names: readonly string[]) =>
    sum(all.filter((each) => each.trigger === trigger && names.includes(each.outcome)));
  return {
    received: of("ok", "filtered", "dead_letter", "dropped"),
    filtered: of("filtered"),
    ok: of("ok"),
    retry: of("retry"),
    deadLetter: of("dead_letter"),
    dropped: of("dropped"),
  };
}

const sum = (all: readonly { readonly count: number }[]): number => all.reduce((total, { count }) => total + count, 0);

function keyWords(key: KeyRule): string {
  if (key.type === "all") return "all objects";
  return key.type === "owner" ? `owner ${key.apiVersion} ${key.kind}` : key.expression;
}
