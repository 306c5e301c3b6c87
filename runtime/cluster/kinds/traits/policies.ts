import { BlockList, isIPv6 } from "node:net";
import { at, equal, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { matchesFormat } from "../../schema/index.ts";
import type { Traits } from "../resource-type.ts";
import { items, made, otherwise } from "./pod-spec.ts";
import { choiceFaults, labelSelectorFaults, shareFaults } from "./value-faults.ts";

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

/** The fields of a policy that name peers. */
const policyPeers = [
  ["ingress", "from"],
  ["egress", "to"],
] as const;

/** True if a block of addresses is a smaller part of another. */
function isWithin(part: string, cidr: string): boolean {
  const [address = "", prefix = ""] = cidr.split("/");
  const [own = "", ownPrefix = ""] = part.split("/");
  const family = (text: string) => (isIPv6(text) ? "ipv6" : "ipv4");
  if (family(address) !== family(own) || Number(ownPrefix) <= Number(prefix)) return false;
  const block = new BlockList();
  block.addSubnet(address, Number(prefix), family(address));
  return block.check(own, family(own));
}

function peerFaults(peer: Record<string, unknown>, path: string): FieldFault[] {
  const selectors = ["podSelector", "namespaceSelector"].filter((name) => peer[name] !== undefined);
  if (peer.ipBlock === undefined) {
    if (selectors.length === 0) return [fault.required(path, "must specify a peer")];
    return selectors.flatMap((name) => labelSelectorFaults(peer[name], `${path}.${name}`));
  }
  const { cidr, except } = fieldsOf(peer.ipBlock);
  if (!cidr) return [fault.required(`${path}.ipBlock.cidr`)];
  if (!matchesFormat(String(cidr), "cidr"))
    return [
      fault.invalid(`${path}.ipBlock.cidr`, cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
    ];
  return (Array.isArray(except) ? except : []).flatMap((part, index) =>
    matchesFormat(String(part), "cidr") && isWithin(String(part), String(cidr))
      ? []
      : [fault.invalid(`${path}.ipBlock.except[${index}]`, part, "must be a strict subset of `cidr`")],
  );
}

export const networkPolicy: Traits = {
  generation: true,
  prepare(object) {
    const spec = made(object, "spec");
    otherwise(spec, "policyTypes", items(spec, "egress").length > 0 ? ["Ingress", "Egress"] : ["Ingress"]);
    for (const [rules] of policyPeers)
      for (const rule of items(spec, rules))
        for (const port of items(rule, "ports")) otherwise(port, "protocol", "TCP");
  },
  check: (object) => [
    ...labelSelectorFaults(at(object, "spec.podSelector"), "spec.podSelector"),
    ...policyPeers.flatMap(([rules, peers]) =>
      items(fieldsOf(object.spec), rules).flatMap((rule, index) =>
        items(rule, peers).flatMap((peer, place) => peerFaults(peer, `spec.${rules}[${index}].${peers}[${place}]`)),
      ),
    ),
  ],
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
  check(object) {
    const { minAvailable, maxUnavailable, selector } = fieldsOf(object.spec);
    const faults = [
      ...shareFaults(minAvailable, "spec.minAvailable"),
      ...shareFaults(maxUnavailable, "spec.maxUnavailable"),
      ...labelSelectorFaults(selector, "spec.selector"),
    ];
    if (minAvailable !== undefined && maxUnavailable !== undefined)
      faults.unshift(fault.invalid("spec", object.spec, "minAvailable and maxUnavailable cannot be both set"));
    return faults;
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
    const group = String(at(object, "spec.scaleTargetRef.apiVersion") ?? "");
    return [
      ...(least < 1 ? [fault.invalid("spec.minReplicas", least, "must be greater than or equal to 1")] : []),
      ...(most < least
        ? [fault.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")]
        : []),
      ...(group === ""
        ? [fault.invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group")]
        : []),
    ];
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
