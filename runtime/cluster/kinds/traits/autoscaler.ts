import { at, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import type { Traits } from "../resource-type.ts";
import {
  below,
  type Check,
  exactlyOneOf,
  type FieldRule,
  named,
  oneOf,
  positive,
  present,
  ruleFaults,
  within,
} from "./field-rules.ts";
import { items, made, otherwise } from "./pod-spec.ts";
import { isAbove } from "./value-faults.ts";

/** Default metric of an autoscaler: 80 % CPU utilization. */
const usualMetric = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
};

/** The apiVersion of the scaled object. Only the core group, which has one kind of workload, has no group. */
const scaledVersion: Check = (value, path) => {
  const { apiVersion, kind } = fieldsOf(value);
  const text = String(apiVersion ?? "");
  if (text === "v1" && kind === "ReplicationController") return [];
  const slashes = text.split("/").length - 1;
  if (slashes > 1) return [fault.invalid(`${path}.apiVersion`, text, `unexpected GroupVersion string: ${text}`)];
  return slashes === 1 && !text.startsWith("/")
    ? []
    : [fault.invalid(`${path}.apiVersion`, text, "apiVersion must specify API group")];
};

const reference: readonly FieldRule[] = [
  ["", scaledVersion],
  ["kind", present(), named("segment")],
  ["name", present(), named("segment")],
];

/** A metric's name. The real server does not check the selector of its series. */
const metricName: readonly FieldRule[] = [["metric.name", present("must specify a metric name"), named("segment")]];

/** The types of a metric, with the field that describes each. */
const sources: Readonly<Record<string, string>> = {
  ContainerResource: "containerResource",
  External: "external",
  Object: "object",
  Pods: "pods",
  Resource: "resource",
};

/** A metric has the one description that its type asks for. */
const metric: Check = (value, path) => {
  if (!isFields(value)) return [];
  const type = String(value.type ?? "");
  const present = Object.values(sources).filter((source) => isFields(value[source]));
  const own = sources[type];
  if (type === "") return [fault.required(`${path}.type`, "must specify a metric source type")];
  if (own === undefined) return [fault.unsupported(`${path}.type`, type, Object.keys(sources))];
  const faults = present.includes(own)
    ? []
    : [fault.required(`${path}.${own}`, "must populate information for the given metric source")];
  return [
    ...faults,
    ...present
      .filter((source) => source !== own)
      .map((source) => fault.forbidden(`${path}.${source}`, "must populate the given metric source only")),
  ];
};

const targetTypes = ["Utilization", "Value", "AverageValue"];

/** A metric's target: a type, and positive amounts. */
const target: Check = (value, path) => {
  const fields = fieldsOf(value);
  const type = String(fields.type ?? "");
  const faults: FieldFault[] = [];
  if (type === "") faults.push(fault.required(`${path}.type`, "must specify a metric target type"));
  else if (!targetTypes.includes(type))
    faults.push(fault.invalid(`${path}.type`, type, "must be either Utilization, Value, or AverageValue"));
  for (const name of ["value", "averageValue"])
    if (fields[name] !== undefined && !isAbove(fields[name], "0"))
      faults.push(fault.invalid(`${path}.${name}`, fields[name], "must be positive"));
  const { averageUtilization: share } = fields;
  if (typeof share === "number" && share < 1)
    faults.push(fault.invalid(`${path}.averageUtilization`, share, "must be greater than 0"));
  return faults;
};

/** The target of a metric of the pods' resources is a share or an amount of each pod. */
const resourceTarget: Check = (value, path) => {
  const { averageUtilization: share, averageValue: amount } = fieldsOf(value);
  if (share === undefined && amount === undefined)
    return [fault.required(`${path}.averageUtilization`, "must set either a target raw value or a target utilization")];
  return share !== undefined && amount !== undefined
    ? [fault.forbidden(`${path}.averageValue`, "may not set both a target raw value and a target utilization")]
    : [];
};

const podsTarget: Check = (value, path) =>
  fieldsOf(value).averageValue === undefined
    ? [fault.required(`${path}.averageValue`, "must specify a positive target averageValue")]
    : [];

const valueTarget: Check = (value, path) => {
  const { value: whole, averageValue } = fieldsOf(value);
  return whole === undefined && averageValue === undefined
    ? [fault.required(`${path}.averageValue`, "must set either a target value for metric or a per-pod target")]
    : [];
};

const oneValue: Check = (value, path) => {
  const { value: whole, averageValue } = fieldsOf(value);
  return whole !== undefined && averageValue !== undefined
    ? [fault.forbidden(`${path}.value`, "may not set both a target value for metric and a per-pod target")]
    : [];
};

const scaling = (direction: string): FieldRule[] => {
  const rules = `behavior.${direction}`;
  return [
    [
      `${rules}.stabilizationWindowSeconds`,
      within(0, Number.POSITIVE_INFINITY, "must be greater than or equal to zero"),
      within(Number.NEGATIVE_INFINITY, 3600, "must be less than or equal to 3600"),
    ],
    [`${rules}.selectPolicy`, exactlyOneOf(["Disabled", "Max", "Min"])],
    [
      `${rules}.tolerance`,
      (value, path) => (isAbove("0", value) ? [fault.invalid(path, value, "must be greater than or equal to 0")] : []),
    ],
    [`${rules}.policies`, present("must specify at least one Policy")],
    [`${rules}.policies[].type`, oneOf(["Percent", "Pods"])],
    [`${rules}.policies[].value`, positive],
    [
      `${rules}.policies[].periodSeconds`,
      positive,
      within(Number.NEGATIVE_INFINITY, 1800, "must be less than or equal to 1800"),
    ],
  ];
};

const autoscalerRules: readonly FieldRule[] = [
  ...below("scaleTargetRef", reference),
  ["metrics[]", metric],
  ["metrics[].resource.name", present("must specify a resource name")],
  ["metrics[].containerResource.name", present("must specify a resource name")],
  ["metrics[].containerResource.container", present("must specify a container")],
  ...["resource", "containerResource"].map(
    (source): FieldRule => [`metrics[].${source}.target`, target, resourceTarget],
  ),
  ...["pods", "external", "object"].flatMap((source) => below(`metrics[].${source}`, metricName)),
  ["metrics[].pods.target", target, podsTarget],
  ["metrics[].external.target", target, valueTarget, oneValue],
  ["metrics[].object.target", target, valueTarget],
  ...below("metrics[].object.describedObject", reference.slice(1)),
  ...scaling("scaleUp"),
  ...scaling("scaleDown"),
];

export const horizontalPodAutoscaler: Traits = {
  status: true,
  keptLists: ["scaleUp", "scaleDown"].map((direction) => `spec.behavior.${direction}.policies`),
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "minReplicas", 1);
    if (items(spec, "metrics").length === 0) spec.metrics = [usualMetric];
    if (isFields(spec.behavior)) {
      const up = made(spec.behavior, "scaleUp");
      otherwise(up, "stabilizationWindowSeconds", 0);
      const double = { type: "Percent", value: 100, periodSeconds: 15 };
      for (const [rules, policies] of [
        [up, [{ type: "Pods", value: 4, periodSeconds: 15 }, double]],
        [made(spec.behavior, "scaleDown"), [double]],
      ] as const) {
        otherwise(rules, "selectPolicy", "Max");
        otherwise(rules, "policies", policies);
      }
    }
    if (!old) object.status = { currentMetrics: null, desiredReplicas: 0 };
  },
  check(object) {
    const most = at(object, "spec.maxReplicas");
    if (typeof most !== "number" || most < 1)
      return [fault.invalid("spec.maxReplicas", most ?? 0, "must be greater than 0")];
    const least = Number(at(object, "spec.minReplicas"));
    return [
      ...(least < 1 ? [fault.invalid("spec.minReplicas", least, "must be greater than or equal to 1")] : []),
      ...(most < least
        ? [fault.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")]
        : []),
      ...ruleFaults(autoscalerRules, object.spec, "spec"),
    ];
  },
};
