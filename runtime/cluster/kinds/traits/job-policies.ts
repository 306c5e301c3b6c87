import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { type Check, exactlyOneOf, type FieldRule, qualified, ruleFaults } from "./field-rules.ts";
import { items } from "./pod-spec.ts";

/** Most rules of a policy. */
const mostRules = 20;

const oneOfThese =
  (allowed: readonly string[]): Check =>
  (value, path) =>
    value === undefined || value === ""
      ? [fault.required(path, `valid values: [${allowed.map((each) => JSON.stringify(each)).join(" ")}]`)]
      : exactlyOneOf(allowed)(value, path);

/** A rule on failed pods looks at exit codes or at conditions. */
const failureRule: Check = (value, path) => {
  const { onExitCodes, onPodConditions } = fieldsOf(value);
  const hasConditions = Array.isArray(onPodConditions) && onPodConditions.length > 0;
  if (!isFields(onExitCodes))
    return hasConditions
      ? []
      : [fault.invalid(path, value, "specifying one of OnExitCodes and OnPodConditions is required")];
  if (hasConditions)
    return [fault.invalid(path, value, "specifying both OnExitCodes and OnPodConditions is not supported")];
  return exitCodeFaults(onExitCodes, `${path}.onExitCodes.values`);
};

function exitCodeFaults({ values, operator }: Fields, path: string): FieldFault[] {
  const codes: unknown[] = Array.isArray(values) ? values : [];
  if (codes.length === 0) return [fault.invalid(path, values ?? null, "at least one value is required")];
  const faults = codes.flatMap((code, index) => [
    ...(operator === "In" && code === 0
      ? [fault.invalid(`${path}[${index}]`, 0, "must not be 0 for the In operator")]
      : []),
    ...(codes.indexOf(code) < index ? [fault.duplicate(`${path}[${index}]`, code)] : []),
  ]);
  const isOrdered = codes.every((code, index) => index === 0 || Number(codes[index - 1]) <= Number(code));
  return isOrdered ? faults : [...faults, fault.invalid(path, codes, "must be ordered")];
}

const ruleCount: Check = (value, path) =>
  Array.isArray(value) && value.length > mostRules ? [fault.tooMany(path, value.length, mostRules)] : [];

const rules: readonly FieldRule[] = [
  ["podFailurePolicy.rules", ruleCount],
  ["podFailurePolicy.rules[]", failureRule],
  ["podFailurePolicy.rules[].action", oneOfThese(["Count", "FailIndex", "FailJob", "Ignore"])],
  ["podFailurePolicy.rules[].onExitCodes.operator", oneOfThese(["In", "NotIn"])],
  ["podFailurePolicy.rules[].onPodConditions[].type", qualified],
  ["podFailurePolicy.rules[].onPodConditions[].status", exactlyOneOf(["False", "True", "Unknown"])],
  ["successPolicy.rules", ruleCount],
];

/** Faults of a Job's policies on failed and on succeeded pods. */
export function policyFaults(spec: Fields, path: string): FieldFault[] {
  return [...ruleFaults(rules, spec, path), ...failureFaults(spec, path), ...successFaults(spec, path)];
}

function failureFaults(spec: Fields, path: string): FieldFault[] {
  const { podFailurePolicy: policy, podReplacementPolicy: replacement, backoffLimitPerIndex } = spec;
  const isSet = isFields(policy);
  const faults = exactlyOneOf(isSet ? ["Failed"] : ["Failed", "TerminatingOrFailed"])(
    replacement,
    `${path}.podReplacementPolicy`,
  );
  if (!isSet) return faults;
  const pod = fieldsOf(at(spec, "template.spec"));
  if (pod.restartPolicy !== "Never")
    faults.push(
      fault.invalid(
        `${path}.template.spec.restartPolicy`,
        pod.restartPolicy ?? "",
        'only "Never" is supported when podFailurePolicy is specified',
      ),
    );
  const names = ["containers", "initContainers"].flatMap((list) => items(pod, list).map(({ name }) => name));
  for (const [index, { action, onExitCodes }] of items(policy, "rules").entries()) {
    const where = `${path}.podFailurePolicy.rules[${index}]`;
    const { containerName: name } = fieldsOf(onExitCodes);
    if (name !== undefined && name !== null && !names.includes(name))
      faults.push(
        fault.invalid(
          `${where}.onExitCodes.containerName`,
          name,
          "must be one of the container or initContainer names in the pod template",
        ),
      );
    if (action === "FailIndex" && backoffLimitPerIndex === undefined)
      faults.push(fault.invalid(`${where}.action`, action, "requires the backoffLimitPerIndex to be set"));
  }
  return faults;
}

function successFaults({ successPolicy, completions }: Fields, path: string): FieldFault[] {
  if (!isFields(successPolicy)) return [];
  const where = `${path}.successPolicy.rules`;
  const all = items(successPolicy, "rules");
  if (all.length === 0)
    return [fault.required(where, "at least one rules must be specified when the successPolicy is specified")];
  return all.flatMap(({ succeededCount: count, succeededIndexes: indexes }, index) => {
    const own = `${where}[${index}]`;
    const faults: FieldFault[] = [];
    if (typeof count !== "number" && typeof indexes !== "string")
      faults.push(fault.required(own, "at least one of succeededCount or succeededIndexes must be specified"));
    const wrong = typeof indexes === "string" ? indexFault(indexes, Number(completions ?? 0)) : undefined;
    if (wrong !== undefined)
      faults.push(fault.invalid(`${own}.succeededIndexes`, indexes, `error parsing succeededIndexes: ${wrong}`));
    if (typeof count === "number" && count < 0)
      faults.push(fault.invalid(`${own}.succeededCount`, count, "must be greater than or equal to 0"));
    if (typeof count === "number" && count > Number(completions ?? 0))
      faults.push(
        fault.invalid(
          `${own}.succeededCount`,
          count,
          `must be less than or equal to ${completions} (the number of specified completions)`,
        ),
      );
    return faults;
  });
}

/** The first fault of indexes such as `0-3,5`. */
function indexFault(text: string, completions: number): string | undefined {
  let before = -1;
  for (const range of text === "" ? [] : text.split(",")) {
    const limits = range.split("-");
    if (limits.length > 2)
      return `the fragment "${range}" violates the requirement that an index interval can have at most two parts separated by '-'`;
    for (const limit of limits) {
      if (!/^\d+$/.test(limit)) return `cannot convert string to integer for index: "${limit}"`;
      if (Number(limit) >= completions) return `too large index: "${limit}"`;
      if (Number(limit) <= before) return `non-increasing order, previous: ${before}, current: ${Number(limit)}`;
      before = Number(limit);
    }
  }
  return undefined;
}
