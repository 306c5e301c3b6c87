import { at, equal, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import type { Traits } from "../resource-type.ts";
import { items, made, otherwise } from "./pod-spec.ts";

export const rbac: Traits = { nameRule: "segment", createOnUpdate: true };

/** Validation of a Role and ClusterRole: each rule names verbs and the resources or paths they apply to. */
export const role: Traits = {
  ...rbac,
  check: (object) =>
    items(object, "rules").flatMap((rule, index) => {
      const path = `rules[${index}]`;
      const empty = (name: string) => !Array.isArray(rule[name]) || rule[name].length === 0;
      const missing = (name: string, detail: string) =>
        empty(name) ? [fault.required(`${path}.${name}`, detail)] : [];
      if (!empty("nonResourceURLs")) return missing("verbs", "verbs must contain at least one value");
      return [
        ...missing("verbs", "verbs must contain at least one value"),
        ...missing("apiGroups", "resource rules must supply at least one api group"),
        ...missing("resources", "resource rules must supply at least one resource"),
      ];
    }),
};

const rbacGroup = "rbac.authorization.k8s.io";

export const roleBinding: Traits = {
  ...rbac,
  prepare(object) {
    const reference = made(object, "roleRef");
    if (!reference.apiGroup) reference.apiGroup = rbacGroup;
    for (const subject of items(object, "subjects"))
      if ((subject.kind === "User" || subject.kind === "Group") && !subject.apiGroup) subject.apiGroup = rbacGroup;
  },
  check: (object: KubeObject, old: KubeObject | undefined) =>
    old && !equal(object.roleRef, old.roleRef)
      ? [fault.invalid("roleRef", object.roleRef, "cannot change roleRef")]
      : [],
};

export const lease: Traits = {
  needsResourceVersion: true,
  createOnUpdate: true,
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

export const networkPolicy: Traits = {
  generation: true,
  prepare(object) {
    const spec = made(object, "spec");
    otherwise(spec, "policyTypes", items(spec, "egress").length > 0 ? ["Ingress", "Egress"] : ["Ingress"]);
  },
};

export const podDisruptionBudget: Traits = {
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
};

/** Default metric of an autoscaler: 80 % CPU utilization. */
const usualMetric = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
};

export const horizontalPodAutoscaler: Traits = {
  status: true,
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "minReplicas", 1);
    if (items(spec, "metrics").length === 0) spec.metrics = [usualMetric];
    if (!old) object.status = { currentMetrics: null, desiredReplicas: 0 };
  },
  check(object) {
    const most = at(object, "spec.maxReplicas");
    return typeof most === "number" && most > 0
      ? []
      : [fault.invalid("spec.maxReplicas", most ?? 0, "must be greater than 0")];
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
