import { BlockList, isIP, isIPv6 } from "node:net";
import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { matchesFormat } from "../../schema/index.ts";
import type { Traits } from "../resource-type.ts";
import {
  type Check,
  exactlyOneOf,
  type FieldRule,
  mustBeName,
  named,
  namedIfSet,
  port,
  present,
  ruleFaults,
  within,
} from "./field-rules.ts";
import { items, made, otherwise } from "./pod-spec.ts";
import { choiceFaults, labelSelectorFaults } from "./value-faults.ts";

const pathTypes = ["Exact", "ImplementationSpecific", "Prefix"];

function stepFaults(path: string, where: string): FieldFault[] {
  const within = ["//", "/./", "/../", "%2f", "%2F"].filter((steps) => path.includes(steps));
  const atEnd = ["/..", "/."].filter((steps) => path.endsWith(steps));
  return [
    ...within.map((steps) => fault.invalid(where, path, `must not contain '${steps}'`)),
    ...atEnd.map((steps) => fault.invalid(where, path, `cannot end with '${steps}'`)),
  ];
}

const isUnset = (value: unknown): boolean => value === undefined || value === null || value === "";

const serviceRules: readonly FieldRule[] = [
  ["name", named("label")],
  ["port.name", (value, path) => (isUnset(value) ? [] : port(value, path))],
  ["port.number", (value, path) => (value === 0 ? [] : port(value, path))],
];

const wildcard = /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const wildcardMessage =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/** A host of an Ingress: a domain, of which the first label may be `*`. */
const host: Check = (value, path) => {
  if (isUnset(value)) return [];
  const name = String(value);
  // Go reads leading zeros in an address.
  if (isIP(name.replace(/(^|\.)0+(?=\d)/g, "$1")) !== 0)
    return [fault.invalid(path, value, "must be a DNS name, not an IP address")];
  if (name.includes("*") && !wildcard.test(name)) return [fault.invalid(path, value, wildcardMessage)];
  return named("subdomain")(name.replace(/^\*\./, ""), path).map((each) => fault.invalid(path, value, detailOf(each)));
};

const resourceRules: readonly FieldRule[] = [
  ["kind", present(), named("segment")],
  ["name", present(), named("segment")],
  ["apiGroup", namedIfSet("subdomain")],
];

/** The detail of an "Invalid value" fault, without the value. */
const detailOf = ({ message }: FieldFault): string =>
  message.slice(message.indexOf(": ", "Invalid value: ".length) + 2);

const ingressRules: readonly FieldRule[] = [
  ["ingressClassName", namedIfSet("subdomain")],
  ["tls[].hosts[]", (value, path) => mustBeName("subdomain")(String(value ?? "").replace(/^\*\./, ""), path)],
  ["tls[].secretName", named("subdomain")],
  ["rules[].host", host],
  ["rules[].http.paths", present()],
];

function backendFaults({ service, resource }: Fields, where: string): FieldFault[] {
  if (isFields(service) && isFields(resource))
    return [fault.invalid(where, "", "cannot set both resource and service backends")];
  if (!isFields(service))
    return isFields(resource)
      ? ruleFaults(resourceRules, resource, `${where}.resource`)
      : [fault.invalid(where, "", "resource or service backend is required")];
  if (!service.name) return [fault.required(`${where}.service.name`)];
  const { name, number } = fieldsOf(service.port);
  const faults = ruleFaults(serviceRules, service, `${where}.service`);
  if (name && number) return [...faults, fault.invalid(where, "", "cannot set both port name & port number")];
  return name || number ? faults : [...faults, fault.required(where, "port name or number is required")];
}

function pathFaults(path: Fields, where: string): FieldFault[] {
  if (!path.pathType) return [fault.required(`${where}.pathType`, "pathType must be specified")];
  const isAbsolute = typeof path.path === "string" && path.path.startsWith("/");
  const mayBeEmpty = path.pathType === "ImplementationSpecific" && !path.path;
  return [
    ...choiceFaults(path, where, "pathType", pathTypes),
    ...backendFaults(fieldsOf(path.backend), `${where}.backend`),
    ...(path.pathType === "ImplementationSpecific" ? [] : stepFaults(String(path.path), `${where}.path`)),
    ...(isAbsolute || mayBeEmpty ? [] : [fault.invalid(`${where}.path`, path.path ?? "", "must be an absolute path")]),
  ];
}

export const ingress: Traits = {
  status: true,
  generation: true,
  prepare(object, old) {
    if (!old) object.status = { loadBalancer: {} };
  },
  check(object) {
    const spec = fieldsOf(object.spec);
    const rules = items(spec, "rules");
    if (rules.length === 0 && !isFields(spec.defaultBackend))
      return [fault.invalid("spec", null, "either `defaultBackend` or `rules` must be specified")];
    return [
      ...ruleFaults(ingressRules, spec, "spec"),
      ...(isFields(spec.defaultBackend) ? backendFaults(spec.defaultBackend, "spec.defaultBackend") : []),
      ...rules.flatMap((rule, index) =>
        items(fieldsOf(rule.http), "paths").flatMap((path, place) =>
          pathFaults(path, `spec.rules[${index}].http.paths[${place}]`),
        ),
      ),
    ];
  },
};

/** The fields of a policy that name peers. */
const policyPeers = [
  ["ingress", "from"],
  ["egress", "to"],
] as const;

/** True if an IPv4 address is not the first one of its block. */
function hasBitsBeyond(address: string, prefix: number): boolean {
  if (isIP(address) !== 4) return false;
  const bits = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  return bits % 2 ** (32 - prefix) !== 0;
}

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
  if (selectors.length > 0) return [fault.forbidden(path, "may not specify both ipBlock and another peer")];
  const { cidr, except } = fieldsOf(peer.ipBlock);
  if (!cidr) return [fault.required(`${path}.ipBlock.cidr`)];
  if (!matchesFormat(String(cidr), "cidr"))
    return [
      fault.invalid(`${path}.ipBlock.cidr`, cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
    ];
  const [address = "", prefix = ""] = String(cidr).split("/");
  if (hasBitsBeyond(address, Number(prefix)))
    return [fault.invalid(`${path}.ipBlock.cidr`, cidr, "must not have bits set beyond the prefix length")];
  return (Array.isArray(except) ? except : []).flatMap((part, index) =>
    matchesFormat(String(part), "cidr") && isWithin(String(part), String(cidr))
      ? []
      : [fault.invalid(`${path}.ipBlock.except[${index}]`, part, "must be a strict subset of `cidr`")],
  );
}

const directions = ["Ingress", "Egress"];

/** The end of a range of ports, which needs a number as its beginning. */
const endPort: Check = (value, path) => {
  if (!isFields(value) || value.endPort === undefined || value.endPort === null) return [];
  const where = `${path}.endPort`;
  const { port: start, endPort: end } = value;
  if (start === undefined || start === null)
    return [fault.invalid(where, end, "may not be specified when `port` is not specified")];
  if (typeof start !== "number") return [fault.invalid(where, end, "may not be specified when `port` is non-numeric")];
  return [
    ...(Number(end) < start ? [fault.invalid(where, start, "must be greater than or equal to `port`")] : []),
    ...within(1, 65_535)(end, where),
  ];
};

const policyRules: readonly FieldRule[] = [
  ...policyPeers.flatMap(([rules]): FieldRule[] => [
    [`${rules}[].ports[].protocol`, exactlyOneOf(["TCP", "UDP", "SCTP"])],
    [`${rules}[].ports[].port`, port],
    [`${rules}[].ports[]`, endPort],
  ]),
  [
    "policyTypes",
    (value, path) =>
      Array.isArray(value) && value.length > 2
        ? [fault.invalid(path, value, "may not specify more than two policyTypes")]
        : [],
  ],
  [
    "policyTypes[]",
    (value, path) => (directions.includes(String(value)) ? [] : [fault.unsupported(path, value, directions)]),
  ],
];

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
    ...ruleFaults(policyRules, object.spec, "spec"),
    ...policyPeers.flatMap(([rules, peers]) =>
      items(fieldsOf(object.spec), rules).flatMap((rule, index) =>
        items(rule, peers).flatMap((peer, place) => peerFaults(peer, `spec.${rules}[${index}].${peers}[${place}]`)),
      ),
    ),
  ],
};
