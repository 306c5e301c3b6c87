import { isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { labelFaults, qualifiedNameFaults } from "../names.ts";
import {
  below,
  type Check,
  exactlyOneOf,
  type FieldRule,
  labels,
  mustBeName,
  named,
  oneOf,
  positive,
  present,
  qualified,
  selector,
  within,
} from "./field-rules.ts";

/** A toleration without a key tolerates everything, and one that asks for presence has no value. */
const toleration: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { key, operator, effect, tolerationSeconds } = value;
  const text = String(value.value ?? "");
  const faults: FieldFault[] = [];
  if (!key && operator !== "Exists")
    faults.push(
      fault.invalid(
        `${path}.operator`,
        operator ?? "",
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      ),
    );
  if (tolerationSeconds !== undefined && effect !== "NoExecute")
    faults.push(
      fault.invalid(`${path}.effect`, effect ?? "", "effect must be 'NoExecute' when `tolerationSeconds` is set"),
    );
  if (!operator || operator === "Equal")
    faults.push(...labelFaults({ a: text }, path).map((each) => ({ ...each, field: `${path}.operator` })));
  else if (operator === "Exists") {
    if (text !== "")
      faults.push(fault.invalid(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"));
  } else faults.push(fault.unsupported(`${path}.operator`, operator, ["Equal", "Exists"]));
  return faults;
};

const weight = (value: unknown, path: string): FieldFault[] =>
  within(1, 100, "must be in the range 1-100")(value ?? 0, path);

/** Keys of labels add to a selector. */
const keysNeedSelector: Check = (value, path) =>
  isFields(value) && !isFields(value.labelSelector)
    ? ["matchLabelKeys", "mismatchLabelKeys"]
        .filter((name) => Array.isArray(value[name]) && value[name].length > 0)
        .map((name) => fault.forbidden(`${path}.${name}`, "must not be specified when labelSelector is not set"))
    : [];

const mustBeQualified: Check = (value, path) =>
  qualifiedNameFaults(String(value ?? "")).map((text) => fault.invalid(path, value ?? "", text));

const affinityTerm: readonly FieldRule[] = [
  ["topologyKey", present("can not be empty"), qualified],
  ["", keysNeedSelector],
  ["matchLabelKeys[]", mustBeQualified],
  ["mismatchLabelKeys[]", mustBeQualified],
  ["labelSelector", selector],
  ["namespaceSelector", selector],
  // The real server names the field in the singular, and without its index.
  ["namespaces[]", (value, path) => mustBeName("label")(value, path.replace(/s\[\d+\]$/, ""))],
];

const affinityRules: readonly FieldRule[] = ["podAffinity", "podAntiAffinity"].flatMap((kind) => [
  ...below(`affinity.${kind}.requiredDuringSchedulingIgnoredDuringExecution[]`, affinityTerm),
  ...below(`affinity.${kind}.preferredDuringSchedulingIgnoredDuringExecution[]`, [
    ["weight", weight],
    // A term that is missing is an empty one.
    [
      "podAffinityTerm",
      (value, path) => (isFields(value) ? [] : [fault.required(`${path}.topologyKey`, "can not be empty")]),
    ],
    ...below("podAffinityTerm", affinityTerm),
  ]),
]);

/** No two constraints have the same key and the same action. */
const spreadOnce: Check = (value, path) => {
  const pairs = new Set<string>();
  return (Array.isArray(value) ? value : []).flatMap((one, index) => {
    if (!isFields(one)) return [];
    const pair = `{${one.topologyKey ?? ""}, ${one.whenUnsatisfiable ?? ""}}`;
    const isKnown = pairs.has(pair);
    pairs.add(pair);
    return isKnown ? [fault.duplicate(`${path}[${index}].{topologyKey, whenUnsatisfiable}`, pair)] : [];
  });
};

/** A requirement on a node's labels or fields. */
const nodeRequirement =
  (isField: boolean, isRequired: boolean): Check =>
  (value, path) => {
    if (!isFields(value)) return [];
    const { key, operator } = value;
    const given: unknown[] = Array.isArray(value.values) ? value.values : [];
    const where = `${path}.values`;
    const faults: FieldFault[] = [];
    if (isField) {
      if (key !== "metadata.name")
        faults.push(fault.invalid(`${path}.key`, key ?? "", "not a valid field selector key"));
      if (operator !== "In" && operator !== "NotIn")
        faults.push(fault.invalid(`${path}.operator`, operator ?? "", "not a valid selector operator"));
      else if (given.length !== 1)
        faults.push(
          fault.required(where, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
        );
      if (key === "metadata.name")
        for (const [index, one] of given.entries()) faults.push(...mustBeName("subdomain")(one, `${where}[${index}]`));
      return faults;
    }
    if (operator === "In" || operator === "NotIn") {
      if (given.length === 0)
        faults.push(fault.required(where, "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (given.length > 0)
        faults.push(fault.forbidden(where, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    } else if (operator === "Gt" || operator === "Lt") {
      if (given.length !== 1)
        faults.push(fault.required(where, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    } else faults.push(fault.invalid(`${path}.operator`, operator ?? "", "not a valid selector operator"));
    faults.push(...mustBeQualified(key, `${path}.key`));
    // The real server reads the values of a preference only where the scheduler does.
    if (isRequired)
      for (const [index, one] of given.entries()) faults.push(...labelFaults({ a: String(one) }, `${where}[${index}]`));
    return faults;
  };

const nodeTerm = (isRequired: boolean): FieldRule[] => [
  ["matchExpressions[]", nodeRequirement(false, isRequired)],
  ["matchFields[]", nodeRequirement(true, isRequired)],
];

const onNodes = "affinity.nodeAffinity";

const nodeAffinityRules: readonly FieldRule[] = [
  [
    `${onNodes}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`,
    present("must have at least one node selector term"),
  ],
  ...below(`${onNodes}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]`, nodeTerm(true)),
  [`${onNodes}.preferredDuringSchedulingIgnoredDuringExecution[].weight`, weight],
  ...below(`${onNodes}.preferredDuringSchedulingIgnoredDuringExecution[].preference`, nodeTerm(false)),
];

/** The least number of domains counts only where a pod may have to wait. */
const minDomains: Check = (value, path) => {
  if (!isFields(value) || value.minDomains === undefined || value.minDomains === null) return [];
  const { minDomains: least, whenUnsatisfiable: when } = value;
  const where = `${path}.minDomains`;
  return [
    ...positive(least, where),
    ...(when === "DoNotSchedule"
      ? []
      : [
          fault.invalid(
            where,
            least,
            `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${String(when)}`,
          ),
        ]),
  ];
};

/** The names in a list of objects are labels' keys, and each is there once. Faults are at the item. */
const gatesOnce: Check = (value, path) => {
  const names = new Set<unknown>();
  return (Array.isArray(value) ? value.filter(isFields) : []).flatMap(({ name }, index) => {
    const isKnown = names.has(name);
    names.add(name);
    return isKnown ? [fault.duplicate(`${path}[${index}]`, name)] : qualified(name, `${path}[${index}]`);
  });
};

/** The rules of where and when a pod may run. */
export const schedulingRules: readonly FieldRule[] = [
  ["nodeName", named("subdomain")],
  ["nodeSelector", labels],
  ["schedulingGates", gatesOnce],
  ["tolerations[]", toleration],
  ["tolerations[].key", qualified],
  ["tolerations[].effect", oneOf(["NoSchedule", "PreferNoSchedule", "NoExecute"])],
  ...affinityRules,
  ...nodeAffinityRules,
  ["topologySpreadConstraints[].maxSkew", positive],
  ["topologySpreadConstraints[].topologyKey", present("can not be empty")],
  ["topologySpreadConstraints[].whenUnsatisfiable", present(), oneOf(["DoNotSchedule", "ScheduleAnyway"])],
  ["topologySpreadConstraints[].labelSelector", selector],
  ["topologySpreadConstraints[].matchLabelKeys[]", mustBeQualified],
  ["topologySpreadConstraints[].nodeAffinityPolicy", exactlyOneOf(["Honor", "Ignore"])],
  ["topologySpreadConstraints[].nodeTaintsPolicy", exactlyOneOf(["Honor", "Ignore"])],
  ["topologySpreadConstraints[]", keysNeedSelector, minDomains],
  ["topologySpreadConstraints", spreadOnce],
];
