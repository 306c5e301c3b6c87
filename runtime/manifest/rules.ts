import { parseDuration } from "@watchfire/sdk";
import { requiredName } from "../kube/field-selector.ts";
import { compileBudget, mostConditions } from "./condition-limits.ts";
import { reconcileFaults } from "./reconcile-rules.ts";
import { type ExpressionChecker, field, isRecord, items, type RuleFault, text } from "./rule-fault.ts";
import { scheduleFaults } from "./schedule.ts";
import { labelSelectorFaults } from "./selector.ts";

/**
 * Watches of the API server that one manifest may name: each is a connection, 190 KB of the runtime's memory, and as many goroutines
 * of the API server. Twice as many as a trigger may name namespaces.
 */
const mostWatches = 200;

/**
 * Rights that the permissions of one manifest may name: each verb on each resource of each group, for each name, in each namespace.
 * Every right is compared with those of the account every few seconds, and lists of 100 multiply to billions.
 */
const mostRights = 5_000;

/** The fields of an object's metadata form. */
const metadataFields = /^\.(?:metadata|kind|apiVersion)(?![\w-])/;

/**
 * Checks rules between a manifest's fields. Takes the raw document, and ignores values of the wrong shape, so that these faults
 * are reported together with those of the schema.
 */
export function* ruleFaults(manifest: unknown, checkAny?: ExpressionChecker): Generator<RuleFault> {
  const spec = field(manifest, "spec");
  const budget = compileBudget();
  const checkExpression: ExpressionChecker | undefined =
    checkAny && ((expression, object, use) => checkAny(expression, object, use, budget));
  const triggers = items(field(spec, "triggers"));
  yield* triggerFaults(triggers, items(field(spec, "permissions")), checkExpression);
  yield* reconcileFaults(triggers, field(spec, "delivery"), checkExpression);
  yield* readFaults(items(field(spec, "reads")), items(field(spec, "permissions")));
  yield* watchFaults([...triggers.map((trigger) => field(trigger, "watch")), ...items(field(spec, "reads"))]);
  yield* rightFaults(items(field(spec, "permissions")));
  yield* retryFaults(field(field(spec, "delivery"), "retry"));
  yield* batchFaults(field(spec, "delivery"));
  yield* debounceFaults(field(spec, "delivery"), items(field(spec, "triggers")));
  yield* envFaults(items(field(spec, "env")));
}

function* triggerFaults(
  triggers: unknown[],
  permissions: unknown[],
  checkExpression?: ExpressionChecker,
): Generator<RuleFault> {
  const nameOf = (trigger: unknown) => {
    const kind = field(trigger, "schedule") === undefined ? field(field(trigger, "watch"), "kind") : "schedule";
    return field(trigger, "name") ?? (typeof kind === "string" ? kind.toLowerCase() : undefined);
  };
  for (const index of repeated(triggers.map(nameOf))) {
    const given = field(triggers[index], "name") !== undefined;
    yield {
      code: "WF_MANIFEST_DUPLICATE_NAME",
      path: ["spec", "triggers", index, ...(given ? ["name"] : [])],
      what: `an earlier trigger has the name ${JSON.stringify(nameOf(triggers[index]))}`,
      ...(given ? {} : { hint: "give each trigger of this kind a `name`" }),
    };
  }
  for (const [index, trigger] of triggers.entries()) {
    const watch = field(trigger, "watch");
    const path = ["spec", "triggers", index, "watch"];
    if (hasOnly(trigger, ["name", "watch", "schedule"])) yield* whatFires(trigger, ["spec", "triggers", index]);
    yield* kindFaults(watch, path);
    yield* selectorFaults(field(watch, "labelSelector"), [...path, "labelSelector"]);
    yield* selectorFaults(field(watch, "namespaceSelector"), [...path, "namespaceSelector"]);
    const object = field(watch, "object") === "Metadata" ? "Metadata" : "Full";
    const check = checkExpression && ((expression: string) => checkExpression(expression, object));
    yield* conditionFaults(items(field(watch, "matchConditions")), [...path, "matchConditions"], check);
    if (object === "Metadata") yield* fieldFaults(items(field(watch, "changedFields")), [...path, "changedFields"]);
    yield* secretFaults(watch, permissions, path);
  }
}

/**
 * A definition's group has a dot, and its kinds may be in lower case. The other groups are Kubernetes' own, whose kinds are not.
 */
function* kindFaults(selection: unknown, path: RuleFault["path"]): Generator<RuleFault> {
  const [apiVersion, kind] = [text(field(selection, "apiVersion")), text(field(selection, "kind"))];
  if (apiVersion === undefined || kind === undefined || /\..*\//.test(apiVersion) || !/^[a-z]/.test(kind)) return;
  yield {
    code: "WF_MANIFEST_INVALID_VALUE",
    path: [...path, "kind"],
    what: `${apiVersion} has no kind in small letters`,
    hint: "take the kind as `kubectl api-resources` shows it",
  };
}

function* whatFires(trigger: Record<string, unknown>, path: RuleFault["path"]): Generator<RuleFault> {
  if (trigger.watch === undefined && trigger.schedule === undefined) {
    const hint = "a trigger has `watch` or `schedule`";
    yield { code: "WF_MANIFEST_MISSING_FIELD", path: [...path, "watch"], what: "watch or schedule is missing", hint };
  }
  yield* scheduleFaults(trigger, path);
}

function* readFaults(reads: unknown[], permissions: unknown[]): Generator<RuleFault> {
  // `ctx.cache` names the kind that it reads without its version.
  const kindOf = (read: unknown) => {
    const [apiVersion, kind] = [text(field(read, "apiVersion")), text(field(read, "kind"))];
    return apiVersion && kind ? `${kind} of ${/^(.*)\//.exec(apiVersion)?.[1] ?? "the core group"}` : undefined;
  };
  for (const index of repeated(reads.map(kindOf))) {
    yield {
      code: "WF_MANIFEST_DUPLICATE_NAME",
      path: ["spec", "reads", index, "kind"],
      what: `an earlier read has the kind ${kindOf(reads[index])}`,
      hint: "write one read whose selectors include both",
    };
  }
  for (const [index, read] of reads.entries()) {
    const path = ["spec", "reads", index];
    yield* kindFaults(read, path);
    yield* selectorFaults(field(read, "labelSelector"), [...path, "labelSelector"]);
    yield* selectorFaults(field(read, "namespaceSelector"), [...path, "namespaceSelector"]);
    const indexes = items(field(read, "indexes"));
    for (const at of repeated(indexes.map((each) => field(each, "name")))) {
      const what = "an earlier index has this name";
      yield { code: "WF_MANIFEST_DUPLICATE_NAME", path: [...path, "indexes", at, "name"], what };
    }
    if (field(read, "object") === "Metadata") {
      for (const [at, each] of indexes.entries()) {
        const faults = fieldFaults([field(each, "field")], []);
        for (const fault of faults) yield { ...fault, path: [...path, "indexes", at, "field"] };
      }
    }
    yield* secretFaults(read, permissions, path);
  }
}

/** Too many watches in all: each name of a namespace is one. */
function* watchFaults(selections: readonly unknown[]): Generator<RuleFault> {
  const countOf = (selection: unknown) =>
    selection === undefined ? 0 : Math.max(1, items(field(field(selection, "namespaceSelector"), "matchNames")).length);
  const count = selections.reduce<number>((sum, selection) => sum + countOf(selection), 0);
  if (count <= mostWatches) return;
  yield {
    code: "WF_MANIFEST_INVALID_VALUE",
    path: ["spec", "triggers"],
    what: `triggers and reads make ${count} watches, a watch for each namespace that one names; expected at most ${mostWatches}`,
    hint: "choose namespaces by matchLabels, leave namespaceSelector out, or divide the function",
  };
}

/** Too many rights in all. */
function* rightFaults(permissions: readonly unknown[]): Generator<RuleFault> {
  const lists = ["apiGroups", "resources", "verbs", "resourceNames", "namespaces"];
  const countOf = (rule: unknown) =>
    lists.reduce((product, list) => product * Math.max(1, items(field(rule, list)).length), 1);
  const count = permissions.reduce<number>((sum, rule) => sum + countOf(rule), 0);
  if (count <= mostRights) return;
  yield {
    code: "WF_MANIFEST_INVALID_VALUE",
    path: ["spec", "permissions"],
    what: `permissions name ${count} rights, a verb on a resource in a namespace each; expected at most ${mostRights}`,
    hint: "divide the rules, so that each names only what it needs, or divide the function",
  };
}

function* selectorFaults(selector: unknown, path: RuleFault["path"]): Generator<RuleFault> {
  const labels = field(selector, "matchLabels");
  const expressions = items(field(selector, "matchExpressions"));
  if (field(selector, "matchNames") !== undefined && (labels !== undefined || expressions.length > 0)) {
    yield {
      code: "WF_MANIFEST_INVALID_VALUE",
      path,
      what: "matchNames excludes matchLabels and matchExpressions",
      hint: "use two triggers, or one of the two",
    };
  }
  const wellFormed = {
    // zod ignores a key `__proto__` with everything below it, so each key is checked here.
    matchLabels: Object.fromEntries(
      Object.entries(isRecord(labels) ? labels : {}).map(([key, value]) => [key, text(value) ?? ""]),
    ),
    matchExpressions: expressions.map((expression) => ({
      key: text(field(expression, "key")) ?? "any",
      operator: text(field(expression, "operator")) ?? "",
      values: items(field(expression, "values")).map((value) => text(value) ?? ""),
    })),
  };
  for (const fault of labelSelectorFaults(wellFormed)) {
    yield { code: "WF_MANIFEST_INVALID_VALUE", path: [...path, ...fault.path], what: fault.message };
  }
}

/** Finds changed fields outside of the metadata when only the metadata is read. */
function* fieldFaults(fields: unknown[], path: RuleFault["path"]): Generator<RuleFault> {
  for (const [index, name] of fields.entries()) {
    if (typeof name !== "string" || !name.startsWith(".") || metadataFields.test(name)) continue;
    yield {
      code: "WF_MANIFEST_INVALID_VALUE",
      path: [...path, index],
      what: "only metadata is read, because `object` is Metadata",
      hint: "name a field of .metadata, or leave `object` out",
    };
  }
}

function* conditionFaults(
  conditions: unknown[],
  path: RuleFault["path"],
  check?: (expression: string) => string | undefined,
): Generator<RuleFault> {
  for (const index of repeated(conditions.map((condition) => field(condition, "name")))) {
    const what = "an earlier condition has this name";
    yield { code: "WF_MANIFEST_DUPLICATE_NAME", path: [...path, index, "name"], what };
  }
  // The schema reports that there are too many.
  for (const [index, condition] of conditions.slice(0, mostConditions).entries()) {
    const expression = text(field(condition, "expression"));
    const fault = expression === undefined ? undefined : check?.(expression);
    if (fault !== undefined) {
      yield { code: "WF_MANIFEST_EXPRESSION", path: [...path, index, "expression"], what: fault };
    }
  }
}

function* retryFaults(retry: unknown): Generator<RuleFault> {
  const initial = text(field(retry, "initialDelay")) ?? "1s";
  const most = text(field(retry, "maxDelay")) ?? "5m";
  if ((parseDuration(initial) ?? 0) <= (parseDuration(most) ?? Number.POSITIVE_INFINITY)) return;
  yield {
    code: "WF_MANIFEST_INVALID_VALUE",
    path: ["spec", "delivery", "retry", "maxDelay"],
    what: `maxDelay (${most}) is less than initialDelay (${initial})`,
    hint: "raise maxDelay or lower initialDelay",
  };
}

function* batchFaults(delivery: unknown): Generator<RuleFault> {
  const mode = field(delivery, "mode");
  if (field(delivery, "batch") === undefined || mode === undefined || mode === "All") return;
  yield {
    code: "WF_MANIFEST_INVALID_VALUE",
    path: ["spec", "delivery", "batch"],
    what: `a batch has every event, and mode ${JSON.stringify(mode)} drops some`,
    hint: "leave out batch, or mode",
  };
}

function* debounceFaults(delivery: unknown, triggers: readonly unknown[]): Generator<RuleFault> {
  if (field(delivery, "debounce") === undefined || triggers.length === 0) return;
  if (triggers.some((trigger) => field(trigger, "schedule") === undefined)) return;
  yield {
    code: "WF_MANIFEST_INVALID_VALUE",
    path: ["spec", "delivery", "debounce"],
    what: "debounce waits until changes stop, and a schedule has no changes",
    hint: "leave out debounce",
  };
}

function* envFaults(env: unknown[]): Generator<RuleFault> {
  for (const index of repeated(env.map((variable) => field(variable, "name")))) {
    const what = "an earlier variable has this name";
    yield { code: "WF_MANIFEST_DUPLICATE_NAME", path: ["spec", "env", index, "name"], what };
  }
  for (const [index, variable] of env.entries()) {
    const path = ["spec", "env", index];
    const from = field(variable, "valueFrom");
    const both = field(variable, "value") !== undefined;
    if (hasOnly(variable, ["name", "value", "valueFrom"]) && both === (from !== undefined)) {
      const what = both ? "value and valueFrom exclude each other" : "value or valueFrom is missing";
      yield { code: both ? "WF_MANIFEST_INVALID_VALUE" : "WF_MANIFEST_MISSING_FIELD", path, what };
    }
    if (hasOnly(from, keyRefs) && (from.secretKeyRef === undefined) === (from.configMapKeyRef === undefined)) {
      const what = `expected exactly one of ${keyRefs.join(" and ")}`;
      yield { code: "WF_MANIFEST_INVALID_VALUE", path: [...path, "valueFrom"], what };
    }
  }
}

const keyRefs = ["secretKeyRef", "configMapKeyRef"];

/** Whether a value is a map with only these fields; unknown fields are reported elsewhere. */
const hasOnly = (value: unknown, known: readonly string[]): value is Record<string, unknown> =>
  isRecord(value) && Object.keys(value).every((key) => known.includes(key));

/** Returns the indices of repeated texts. */
function repeated(values: readonly unknown[]): number[] {
  const first = new Map<string, number>();
  return values.flatMap((value, index) => {
    if (typeof value !== "string") return [];
    if (first.has(value)) return [index];
    first.set(value, index);
    return [];
  });
}

/**
 * Finds selections, of triggers or reads, that show a handler Secrets which its permissions do not let it list. The runtime's
 * account does the listing, so only this check makes it visible to a reviewer of `permissions`. `object: Metadata` is no
 * exception: the API server asks for `list` there too, and `kubectl apply` keeps a copy of the data in an annotation
 * (`kubectl.kubernetes.io/last-applied-configuration`).
 */
function* secretFaults(
  selection: unknown,
  permissions: readonly unknown[],
  path: RuleFault["path"],
): Generator<RuleFault> {
  if (field(selection, "apiVersion") !== "v1" || field(selection, "kind") !== "Secret") return;
  const names = field(field(selection, "namespaceSelector"), "matchNames");
  // Labels may select any namespace, so only a rule for all of them grants enough.
  const namespaces = Array.isArray(names) ? [...new Set<unknown>(names)] : [undefined];
  const only = requiredName(text(field(selection, "fieldSelector")) ?? "");
  const missing = namespaces.filter((each) => !permissions.some((rule) => grantsList(rule, each, only)));
  if (missing.length === 0) return;
  const which = only === undefined ? "" : `, resourceNames: [${only}]`;
  const isEverywhere = missing.includes(undefined);
  const where = isEverywhere
    ? "all namespaces"
    : `${missing.length === 1 ? "namespace" : "namespaces"} ${missing.join(", ")}`;
  yield {
    code: "WF_MANIFEST_SECRETS",
    path: [...path, "kind"],
    what: `no rule of \`permissions\` grants list on ${only === undefined ? "secrets" : `secrets/${only}`} in ${where}`,
    hint: `add \`- { apiGroups: [""], resources: [secrets]${which}, verbs: [list]${isEverywhere ? "" : `, namespaces: [${missing.join(", ")}]`} }\``,
  };
}

/** Whether a rule grants listing the Secrets of a namespace (`undefined` for all), or only the one with the selected name. */
function grantsList(rule: unknown, namespace: unknown, only: string | undefined): boolean {
  const has = (name: string, value: string) => items(field(rule, name)).some((each) => each === value || each === "*");
  if (!has("apiGroups", "") || !has("resources", "secrets") || !has("verbs", "list")) return false;
  const named = field(rule, "resourceNames");
  if (named !== undefined && !items(named).some((name) => name === only)) return false;
  const granted = field(rule, "namespaces");
  return granted === undefined || (namespace !== undefined && items(granted).includes(namespace));
}
