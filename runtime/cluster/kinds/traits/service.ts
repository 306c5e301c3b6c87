import { randomInt } from "node:crypto";
import { isIP } from "node:net";
import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { matchesFormat } from "../../schema/index.ts";
import { labelFaults, nameFaults, qualifiedNameFaults } from "../names.ts";
import { field, type Traits } from "../resource-type.ts";
import {
  type Check,
  exactlyOneOf,
  type FieldRule,
  ipAddress,
  named,
  oneOf,
  qualified,
  ruleFaults,
  within,
} from "./field-rules.ts";
import { defaultText, items, made, otherwise } from "./pod-spec.ts";
import { addressFaults, defaultFamilies } from "./service-addresses.ts";
import { choiceFaults, portNameFaults, portNumberFaults, protocols } from "./value-faults.ts";

/** A random cluster IP of 10.96.0.0/12, kubeadm's range. Nothing routes to it, and duplicates are unlikely. */
function anyClusterIp(): string {
  return `10.${96 + randomInt(16)}.${randomInt(256)}.${randomInt(1, 255)}`;
}

/** Several ports need names; each its own. */
function servicePortFaults(ports: readonly Fields[]): FieldFault[] {
  const names = new Set<unknown>();
  const places = new Set<string>();
  return ports.flatMap((port, index) => {
    const path = `spec.ports[${index}]`;
    const { targetPort } = port;
    const place = `${port.port}/${port.protocol}`;
    const faults = [
      ...portNumberFaults(port.port, `${path}.port`),
      ...(typeof targetPort === "string"
        ? portNameFaults(targetPort, `${path}.targetPort`)
        : portNumberFaults(targetPort, `${path}.targetPort`)),
      ...(places.has(place) ? [fault.duplicate(path, { Protocol: port.protocol, Port: port.port })] : []),
      ...choiceFaults(port, path, "protocol", protocols),
    ];
    places.add(place);
    if (!port.name) return ports.length > 1 ? [fault.required(`${path}.name`), ...faults] : faults;
    faults.push(
      ...nameFaults("label", String(port.name)).map((text) => fault.invalid(`${path}.name`, port.name, text)),
    );
    if (names.has(port.name)) faults.push(fault.duplicate(`${path}.name`, port.name));
    names.add(port.name);
    return faults;
  });
}

const trafficPolicies = ["Cluster", "Local"];

const externalAddress: Check = (value, path) =>
  /^(127\.|::1$)/.test(String(value))
    ? [fault.invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
    : ipAddress(value, path);

/** The types of a Service that may have a port on each node. */
const nodePortTypes = ["NodePort", "LoadBalancer"];

/** Fields that only a Service with a load balancer may have. */
const balancerFields = ["loadBalancerClass", "allocateLoadBalancerNodePorts"];

/** Faults of fields that a Service's type does not allow. */
function typeFaults(spec: Fields): FieldFault[] {
  const { type, clusterIP, clusterIPs, externalTrafficPolicy, healthCheckNodePort, ports, externalIPs } = spec;
  const addresses: unknown[] = Array.isArray(clusterIPs) ? clusterIPs : [];
  const isOutside = nodePortTypes.includes(String(type)) || (Array.isArray(externalIPs) && externalIPs.length > 0);
  const isBalanced = type === "LoadBalancer";
  const faults: FieldFault[] = [];
  if (type === "ExternalName" && (clusterIP || addresses.length > 0))
    faults.push(fault.forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
  if (clusterIP === "None" && nodePortTypes.includes(String(type)))
    faults.push(fault.invalid("spec.clusterIPs[0]", "None", `may not be set to 'None' for ${type} services`));
  if (type !== "ExternalName" && addresses.length > 0 && clusterIP && addresses[0] !== clusterIP)
    faults.push(fault.invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`"));
  if (externalTrafficPolicy && !isOutside)
    faults.push(
      fault.invalid(
        "spec.externalTrafficPolicy",
        externalTrafficPolicy,
        "may only be set for externally-accessible services",
      ),
    );
  if (!isBalanced)
    for (const name of balancerFields)
      if (spec[name] !== undefined)
        faults.push(fault.forbidden(`spec.${name}`, "may only be used when `type` is 'LoadBalancer'"));
  if (healthCheckNodePort && !(isBalanced && externalTrafficPolicy === "Local"))
    faults.push(
      fault.invalid(
        "spec.healthCheckNodePort",
        healthCheckNodePort,
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ),
    );
  const taken = new Set<string>();
  for (const [index, one] of items(spec, "ports").entries()) {
    const place = `${one.protocol}/${one.nodePort}`;
    if (one.nodePort && taken.has(place))
      faults.push(fault.invalid(`spec.ports[${index}].nodePort`, one.nodePort, "provided port is already allocated"));
    taken.add(place);
  }
  if (type === "ClusterIP")
    (Array.isArray(ports) ? ports : []).forEach((one, index) => {
      if (isFields(one) && one.nodePort)
        faults.push(fault.forbidden(`spec.ports[${index}].nodePort`, "may not be used when `type` is 'ClusterIP'"));
    });
  return [...faults, ...rangeFaults(spec.loadBalancerSourceRanges, isBalanced)];
}

function rangeFaults(ranges: unknown, isBalanced: boolean): FieldFault[] {
  if (!Array.isArray(ranges) || ranges.length === 0) return [];
  const path = "spec.LoadBalancerSourceRanges";
  return [
    ...(isBalanced ? [] : [fault.forbidden(path, "may only be used when `type` is 'LoadBalancer'")]),
    ...ranges.flatMap((range, index) =>
      matchesFormat(String(range), "cidr")
        ? []
        : [
            fault.invalid(
              `${path}[${index}]`,
              range,
              "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            ),
          ],
    ),
  ];
}

const qualifiedIfSet: Check = (value, path) =>
  typeof value === "string" ? qualifiedNameFaults(value).map((text) => fault.invalid(path, value, text)) : [];

const serviceRules: readonly FieldRule[] = [
  ["type", oneOf(["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"])],
  ["sessionAffinity", oneOf(["ClientIP", "None"])],
  ["externalTrafficPolicy", oneOf(trafficPolicies)],
  ["internalTrafficPolicy", exactlyOneOf(trafficPolicies)],
  ["externalIPs[]", externalAddress],
  ["loadBalancerClass", qualified],
  ["trafficDistribution", exactlyOneOf(["PreferClose", "PreferSameZone", "PreferSameNode"])],
  ["ports[].appProtocol", qualifiedIfSet],
];

/** The rules of a Service that is a name for a domain. */
const aliasRules: readonly FieldRule[] = [
  // A domain may end with a dot.
  [
    "externalName",
    (value, path) => named("subdomain")(typeof value === "string" ? value.replace(/\.$/, "") : value, path),
  ],
];

/** The rules of a Service that keeps each client at one pod. */
const affinityRules: readonly FieldRule[] = [
  ["sessionAffinityConfig.clientIP.timeoutSeconds", within(1, 86_400, "must be greater than 0 and less than 86400")],
];

export const service: Traits = {
  nameRule: "label1035",
  status: true,
  createOnUpdate: true,
  returnsDeleted: true,
  warn: ({ spec }) =>
    isFields(spec) && spec.externalName && spec.type !== "ExternalName"
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : [],
  fields: { "spec.clusterIP": field("spec.clusterIP"), "spec.type": field("spec.type") },
  prepare(object, old) {
    const spec = made(object, "spec");
    defaultText(spec, "type", "ClusterIP");
    defaultText(spec, "sessionAffinity", "None");
    for (const port of items(spec, "ports")) {
      defaultText(port, "protocol", "TCP");
      if (!port.targetPort) port.targetPort = port.port;
    }
    if (!old) object.status = { loadBalancer: {} };
    if (spec.sessionAffinity === "ClientIP")
      otherwise(made(made(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10_800);
    if (spec.type === "ExternalName") return;
    const before = old && isFields(old.spec) ? old.spec : {};
    otherwise(spec, "clusterIP", before.clusterIP ?? anyClusterIp());
    otherwise(spec, "clusterIPs", [spec.clusterIP]);
    if (!old) defaultFamilies(spec);
    otherwise(spec, "internalTrafficPolicy", "Cluster");
    if (spec.type === "NodePort" || spec.type === "LoadBalancer") defaultText(spec, "externalTrafficPolicy", "Cluster");
    if (spec.type === "LoadBalancer") otherwise(spec, "allocateLoadBalancerNodePorts", true);
  },
  check(object, old) {
    const faults: FieldFault[] = [];
    const spec = isFields(object.spec) ? object.spec : {};
    if (spec.type !== "ExternalName" && spec.clusterIP !== "None" && items(spec, "ports").length === 0)
      faults.push(fault.required("spec.ports"));
    faults.push(...servicePortFaults(items(spec, "ports")));
    faults.push(...labelFaults(fieldsOf(spec.selector) as Record<string, string>, "spec.selector"));
    if (spec.type === "ExternalName" && !spec.externalName) faults.push(fault.required("spec.externalName"));
    faults.push(...ruleFaults(serviceRules, spec, "spec"), ...typeFaults(spec), ...addressFaults(spec));
    if (spec.type === "ExternalName") faults.push(...ruleFaults(aliasRules, spec, "spec"));
    if (spec.sessionAffinity === "ClientIP") faults.push(...ruleFaults(affinityRules, spec, "spec"));
    const { clusterIP } = spec;
    if (spec.type !== "ExternalName" && clusterIP && clusterIP !== "None" && isIP(String(clusterIP)) === 0)
      faults.push(
        fault.invalid("spec.clusterIPs[0]", clusterIP, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
      );
    const before = at(old, "spec.clusterIP");
    if (before && spec.type !== "ExternalName" && spec.clusterIP !== before)
      faults.push(fault.invalid("spec.clusterIPs[0]", [spec.clusterIP], "may not change once set"));
    return faults;
  },
};
