import { isFields } from "../../api/object.ts";
import { fault } from "../../api/status.ts";
import { containerRules } from "./container-rules.ts";
import { type Check, type FieldRule, ipAddress, mustBeName, named, oneOf, qualified, within } from "./field-rules.ts";
import { schedulingRules } from "./scheduling-rules.ts";
import { id, largest, securityRules } from "./security-rules.ts";
import { volumeRules } from "./volume-rules.ts";

/** Names that may have underscores, as some domains do. */
const searchDomain = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*\.?$/;

const search: Check = (value, path) =>
  typeof value !== "string" || value === "." || searchDomain.test(value)
    ? []
    : [
        fault.invalid(
          path,
          value,
          "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
        ),
      ];

/** Fields of a pod that exclude or need one another. */
const together: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { shareProcessNamespace, hostPID, dnsPolicy, dnsConfig } = value;
  const servers = isFields(dnsConfig) && Array.isArray(dnsConfig.nameservers) ? dnsConfig.nameservers : [];
  const faults =
    shareProcessNamespace === true && hostPID === true
      ? [
          fault.invalid(
            `${path}.securityContext.shareProcessNamespace`,
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
          ),
        ]
      : [];
  if (dnsPolicy !== "None") return faults;
  if (!isFields(dnsConfig))
    faults.push(fault.required(`${path}.dnsConfig`, "must provide `dnsConfig` when `dnsPolicy` is None"));
  else if (servers.length === 0)
    faults.push(
      fault.required(
        `${path}.dnsConfig.nameservers`,
        "must provide at least one DNS nameserver when `dnsPolicy` is None",
      ),
    );
  return faults;
};

const sysctl = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;

/** Names of kernel parameters, each of which is set once. */
const sysctls: Check = (value, path) => {
  const names = new Set<unknown>();
  return (Array.isArray(value) ? value.filter(isFields) : []).flatMap(({ name }, index) => {
    const where = `${path}[${index}].name`;
    const isKnown = names.has(name);
    names.add(name);
    if (isKnown) return [fault.duplicate(where, name)];
    const text = String(name ?? "");
    if (text === "") return [fault.required(where)];
    return text.length <= 253 && sysctl.test(text)
      ? []
      : [
          fault.invalid(
            where,
            name,
            "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
          ),
        ];
  });
};

/** The rules of a pod spec's fields, those of its containers, volumes and place among them. */
export const podRules: readonly FieldRule[] = [
  ["", together],
  ["serviceAccountName", named("subdomain")],
  ["priorityClassName", named("subdomain")],
  ["runtimeClassName", named("subdomain")],
  ["hostname", named("label")],
  ["subdomain", named("label")],
  ["activeDeadlineSeconds", within(1, largest)],
  ["hostAliases[].ip", ipAddress],
  ["hostAliases[].hostnames[]", mustBeName("subdomain")],
  ["dnsConfig.nameservers[]", ipAddress],
  ["dnsConfig.searches[]", search],
  ["readinessGates[].conditionType", qualified],
  // The real server names the structure, and not its field.
  ["os", (value, path) => (isFields(value) ? oneOf(["linux", "windows"])(value.name, path) : [])],
  ...schedulingRules,
  ...securityRules,
  ["securityContext.fsGroup", id],
  ["securityContext.supplementalGroups[]", id],
  ["securityContext.fsGroupChangePolicy", oneOf(["Always", "OnRootMismatch"])],
  ["securityContext.sysctls", sysctls],
  ...volumeRules,
  ...containerRules,
];
