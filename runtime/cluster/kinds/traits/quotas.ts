import { randomUUID } from "node:crypto";
import { Quantity } from "@watchfire/cel";
import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { qualifiedNameFaults } from "../names.ts";
import type { Traits } from "../resource-type.ts";
import { items, made } from "./pod-spec.ts";
import { containerResourceFaults, countFaults, isExtendedResource, resourceNameFaults } from "./resource-rules.ts";
import { isAbove } from "./value-faults.ts";

/** Names that a quota can count without a prefix. */
const quotaResources = [
  "cpu memory ephemeral-storage requests.cpu requests.memory requests.storage requests.ephemeral-storage",
  "limits.cpu limits.memory limits.ephemeral-storage pods services replicationcontrollers resourcequotas secrets",
  "configmaps persistentvolumeclaims services.nodeports services.loadbalancers",
].flatMap((names) => names.split(" "));

/** Quantities of these are counts. */
const countedResources = quotaResources.filter((name) => !/^((requests|limits)\.)?(cpu|memory|.*storage)$/.test(name));

const limitTypes = ["Container", "Pod", "PersistentVolumeClaim"];

/** Pairs of a limit's fields of which the first may not be larger than the second, with the first one's words. */
const limitOrder = [
  ["min", "max", "min value"],
  ["min", "defaultRequest", "min value"],
  ["defaultRequest", "max", "default request value"],
  ["defaultRequest", "default", "default request value"],
  ["default", "max", "default value"],
] as const;

/** The maps of a limit, which have amounts by resource. */
const limitMaps = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

/** Faults of the names of a limit's resources. */
function limitNameFaults(limit: Fields, path: string): FieldFault[] {
  const isOfPods = limit.type === "Container" || limit.type === "Pod";
  return limitMaps.flatMap((map) =>
    Object.keys(fieldsOf(limit[map])).flatMap((name) => {
      const where = `${path}.${map}[${name}]`;
      if (limit.type === "Pod" && map.startsWith("default"))
        return [fault.forbidden(`${path}.${map}`, "may not be specified when `type` is 'Pod'")];
      if (isOfPods) return containerResourceFaults(name, where);
      return resourceNameFaults(name, where, quotaResources.includes(name) || name === "storage");
    }),
  );
}

/** Faults of how much larger a limit may be than a request. */
function ratioFaults({ maxLimitRequestRatio: ratios, min, max }: Fields, path: string): FieldFault[] {
  return Object.entries(fieldsOf(ratios)).flatMap(([name, ratio]) => {
    const where = `${path}.maxLimitRequestRatio[${name}]`;
    if (isAbove("1", ratio)) return [fault.invalid(where, ratio, `ratio ${ratio} is less than 1`)];
    const [least, most, times] = [fieldsOf(min)[name], fieldsOf(max)[name], ratio].map(amountOf);
    if (!least || !most || times === undefined || times / 1e9 <= most / least) return [];
    const bound = (most / least).toFixed(6);
    return [fault.invalid(where, ratio, `ratio ${ratio} is greater than max/min = ${bound}`)];
  });
}

const amountOf = (value: unknown): number | undefined =>
  Quantity.isQuantity(String(value)) ? Number(Quantity.parse(String(value)).billionths) : undefined;

export const limitRange: Traits = {
  createOnUpdate: true,
  prepare(object, old) {
    // The real server names a range that has no name.
    if (!old && !object.metadata.name) object.metadata.name = randomUUID();
    const spec = made(object, "spec");
    if (items(spec, "limits").length === 0) spec.limits = null;
    for (const limit of items(fieldsOf(object.spec), "limits")) {
      if (limit.type !== "Container") continue;
      for (const [field, from] of [
        ["default", "max"],
        ["defaultRequest", "default"],
        ["defaultRequest", "min"],
      ] as const)
        if (isFields(limit[from])) limit[field] = { ...limit[from], ...fieldsOf(limit[field]) };
    }
  },
  check(object) {
    const types = new Set<unknown>();
    return items(fieldsOf(object.spec), "limits").flatMap((limit, index) => {
      const path = `spec.limits[${index}]`;
      const type = String(limit.type ?? "");
      if (!limitTypes.includes(type) && !type.includes("/"))
        return [fault.invalid(`${path}.type`, type, "must be a standard limit type or fully qualified")];
      const faults = types.has(type) ? [fault.duplicate(`${path}.type`, type)] : [];
      faults.push(...qualifiedNameFaults(type).map((text) => fault.invalid(`${path}.type`, type, text)));
      types.add(type);
      faults.push(...limitNameFaults(limit, path));
      const inWrongOrder = limitOrder.flatMap(([low, high, words]) => {
        const most = fieldsOf(limit[high]);
        return Object.entries(fieldsOf(limit[low])).flatMap(([name, value]) =>
          isAbove(value, most[name])
            ? [
                fault.invalid(
                  `${path}.${low}[${name}]`,
                  value,
                  `${words} ${value} is greater than ${high} value ${most[name]}`,
                ),
              ]
            : [],
        );
      });
      const { min, max } = limit;
      if (type === "PersistentVolumeClaim" && ![min, max].some((map) => fieldsOf(map).storage !== undefined))
        faults.push(
          fault.required(
            `${path}.limits`,
            "either minimum or maximum storage value is required, but neither was provided",
          ),
        );
      return [...faults, ...inWrongOrder, ...ratioFaults(limit, path)];
    });
  },
};

/** Scopes of which a quota may have one of each pair. */
const opposites = [
  ["Terminating", "NotTerminating"],
  ["BestEffort", "NotBestEffort"],
] as const;
const computeResources = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/** A resource of claims, which have a class of attributes. */
const isOfStorage = (name: string): boolean => /(^|\/)(persistentvolumeclaims|requests\.storage)$/.test(name);

/** Faults of a quota's scopes: they concern pods, and `BestEffort` no resource of theirs. */
function scopeFaults({ scopes: given, scopeSelector, hard }: Fields): FieldFault[] {
  const scopes: unknown[] = Array.isArray(given) ? given : [];
  const invalid = (why: string) => fault.invalid("spec.scopes", scopes, why);
  const isOutOfScope = (name: string) =>
    scopes.includes("VolumeAttributesClass")
      ? !isOfStorage(name)
      : scopes.includes("BestEffort")
        ? name !== "pods"
        : !["pods", ...computeResources].includes(name);
  if (scopes.includes("")) return [invalid("unsupported scope")];
  return [
    ...(scopes.length > 0 && Object.keys(fieldsOf(hard)).some(isOutOfScope)
      ? [invalid("unsupported scope applied to resource")]
      : []),
    ...(opposites.some((pair) => pair.every((scope) => scopes.includes(scope))) ? [invalid("conflicting scopes")] : []),
    ...items(fieldsOf(scopeSelector), "matchExpressions").flatMap(({ operator, values }) =>
      (operator === "In" || operator === "NotIn") && !(Array.isArray(values) && values.length > 0)
        ? [
            fault.required(
              "spec.scopeSelector.matchExpressions.values",
              "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
          ]
        : [],
    ),
  ];
}

export const resourceQuota: Traits = {
  status: true,
  check: (object) => [
    ...scopeFaults(fieldsOf(object.spec)),
    ...Object.entries(fieldsOf(at(object, "spec.hard"))).flatMap(([name, value]) => {
      const path = `spec.hard[${name}]`;
      const isStandard = quotaResources.includes(name) || /^(requests\.)?hugepages-/.test(name);
      const faults = resourceNameFaults(name, path, isStandard);
      if (!name.includes("/") && !isStandard)
        faults.push(fault.invalid(path, name, "must be a standard resource for quota"));
      if (isAbove("0", value)) faults.push(fault.invalid(path, value, "must be greater than or equal to 0"));
      if (countedResources.includes(name) || isExtendedResource(name)) faults.push(...countFaults(value, path));
      return faults;
    }),
  ],
};
