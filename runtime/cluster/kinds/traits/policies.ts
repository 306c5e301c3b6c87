import { at, equal, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import type { Traits } from "../resource-type.ts";
import { type Check, exactlyOneOf, type FieldRule, named, ruleFaults } from "./field-rules.ts";
import { items, made, otherwise } from "./pod-spec.ts";
import { choiceFaults, labelSelectorFaults, shareFaults } from "./value-faults.ts";

export const rbac: Traits = { nameRule: "segment", createOnUpdate: true };

/** Validation of a Role and ClusterRole: each rule names verbs and the resources or paths they apply to. */
export const role: Traits = {
  ...rbac,
  prepare(object) {
    if (items(object, "rules").length === 0) object.rules = null;
  },
  check: (object) =>
    items(object, "rules").flatMap((rule, index) => {
      const path = `rules[${index}]`;
      const empty = (name: string) => !Array.isArray(rule[name]) || rule[name].length === 0;
      const missing = (name: string, detail: string) =>
        empty(name) ? [fault.required(`${path}.${name}`, detail)] : [];
      if (!empty("nonResourceURLs"))
        return [
          ...missing("verbs", "verbs must contain at least one value"),
          ...(object.kind === "Role"
            ? [
                fault.invalid(
                  `${path}.nonResourceURLs`,
                  rule.nonResourceURLs,
                  "namespaced rules cannot apply to non-resource URLs",
                ),
              ]
            : []),
        ];
      return [
        ...missing("verbs", "verbs must contain at least one value"),
        ...missing("apiGroups", "resource rules must supply at least one api group"),
        ...missing("resources", "resource rules must supply at least one resource"),
      ];
    }),
};

const subjectKinds = ["ServiceAccount", "User", "Group"];

/** A subject of a binding: an account, or a user or group by its name. Without a namespace, an account is of the binding's namespace. */
const subject =
  (isClusterWide: boolean): Check =>
  (value, path) => {
    if (!isFields(value)) return [];
    const { kind, name, namespace, apiGroup } = value;
    const faults = name ? [] : [fault.required(`${path}.name`)];
    if (!subjectKinds.includes(String(kind ?? "")))
      return [...faults, fault.unsupported(`${path}.kind`, kind ?? "", subjectKinds)];
    const group = kind === "ServiceAccount" ? "" : rbacGroup;
    if ((apiGroup ?? "") !== group) faults.push(fault.unsupported(`${path}.apiGroup`, apiGroup ?? "", [group]));
    if (kind !== "ServiceAccount") return faults;
    if (name) faults.push(...named("subdomain")(name, `${path}.name`));
    if (!namespace && isClusterWide) faults.push(fault.required(`${path}.namespace`));
    return faults;
  };

const bindingRules = (isClusterWide: boolean): FieldRule[] => [
  ["subjects[]", subject(isClusterWide)],
  ["roleRef.name", named("segment")],
];

const rbacGroup = "rbac.authorization.k8s.io";

export const roleBinding: Traits = {
  ...rbac,
  prepare(object) {
    const reference = made(object, "roleRef");
    if (!reference.apiGroup) reference.apiGroup = rbacGroup;
    for (const subject of items(object, "subjects"))
      if ((subject.kind === "User" || subject.kind === "Group") && !subject.apiGroup) subject.apiGroup = rbacGroup;
  },
  check(object: KubeObject, old: KubeObject | undefined) {
    const roleRef = fieldsOf(object.roleRef);
    const kinds = object.kind === "RoleBinding" ? ["Role", "ClusterRole"] : ["ClusterRole"];
    const { apiGroup, kind, name } = roleRef;
    const faults = choiceFaults(roleRef, "roleRef", "kind", kinds);
    if (apiGroup !== rbacGroup) faults.unshift(fault.unsupported("roleRef.apiGroup", apiGroup, [rbacGroup]));
    if (kind === undefined) faults.push(fault.unsupported("roleRef.kind", "", kinds));
    if (!name) faults.push(fault.required("roleRef.name"));
    faults.push(...ruleFaults(bindingRules(object.kind !== "RoleBinding"), object, ""));
    if (old && !equal(object.roleRef, old.roleRef)) {
      const changed = { APIGroup: apiGroup, Kind: kind, Name: name };
      faults.push(fault.invalid("roleRef", changed, "cannot change roleRef"));
    }
    return faults;
  },
};

export const lease: Traits = {
  needsResourceVersion: true,
  createOnUpdate: true,
  // The real server has these two only behind a feature gate.
  prepare({ spec }) {
    if (isFields(spec)) for (const name of ["strategy", "preferredHolder"]) delete spec[name];
  },
  check(object) {
    const faults: FieldFault[] = [];
    const duration = at(object, "spec.leaseDurationSeconds");
    if (typeof duration === "number" && duration <= 0)
      faults.push(fault.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"));
    const transitions = at(object, "spec.leaseTransitions");
    if (typeof transitions === "number" && transitions < 0)
      faults.push(fault.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"));
    return faults;
  },
};

export const podDisruptionBudget: Traits = {
  nameRule: "segment",
  status: true,
  generation: true,
  needsResourceVersion: true,
  prepare(object, old) {
    if (!old)
      object.status = {
        currentHealthy: 0,
        desiredHealthy: 0,
        disruptionsAllowed: 0,
        expectedPods: 0,
        observedGeneration: 0,
      };
  },
  check(object) {
    const { minAvailable, maxUnavailable, selector } = fieldsOf(object.spec);
    const faults = [
      ...shareFaults(minAvailable, "spec.minAvailable"),
      ...shareFaults(maxUnavailable, "spec.maxUnavailable"),
      ...labelSelectorFaults(selector, "spec.selector"),
      ...exactlyOneOf(["AlwaysAllow", "IfHealthyBudget"])(
        at(object, "spec.unhealthyPodEvictionPolicy"),
        "spec.unhealthyPodEvictionPolicy",
      ),
    ];
    if (minAvailable !== undefined && maxUnavailable !== undefined)
      faults.unshift(fault.invalid("spec", object.spec, "minAvailable and maxUnavailable cannot be both set"));
    return faults;
  },
};

export const endpointSlice: Traits = {
  generation: true,
  prepare(object) {
    for (const port of items(object, "ports")) otherwise(port, "protocol", "TCP");
  },
};

export const storageClass: Traits = {
  returnsDeleted: true,
  prepare(object) {
    otherwise(object, "reclaimPolicy", "Delete");
    otherwise(object, "volumeBindingMode", "Immediate");
  },
};

export const apiService: Traits = {
  status: true,
  prepare(object, old) {
    if (!old) object.status = {};
    if (isFields(object.spec) && isFields(object.spec.service)) otherwise(object.spec.service, "port", 443);
  },
};
