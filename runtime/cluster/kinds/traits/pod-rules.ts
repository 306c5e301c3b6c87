import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { containerRules } from "./container-rules.ts";
import {
  type Check,
  exactlyOneOf,
  type FieldRule,
  ipAddress,
  mustBeName,
  named,
  namedIfSet,
  oneOf,
  qualified,
  within,
} from "./field-rules.ts";
import { allContainers } from "./pod-spec.ts";
import { resourceRules } from "./resource-rules.ts";
import { schedulingRules } from "./scheduling-rules.ts";
import { id, largest, securityRules } from "./security-rules.ts";
import { volumeRules } from "./volume-rules.ts";
import { hostProcessFaults, linuxFaults, windowsFaults } from "./windows-rules.ts";

/** Names that may have underscores, as some domains do. */
const searchDomain = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*\.?$/;

const search: Check = (value, path) => {
  if (typeof value !== "string" || value === ".") return [];
  if (value.length > 253) return [fault.invalid(path, value, "must be no more than 253 characters")];
  return searchDomain.test(value)
    ? []
    : [
        fault.invalid(
          path,
          value,
          "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
        ),
      ];
};

/** An option of the resolver has a name. The fault is at the option. */
const dnsOption: Check = (value, path) =>
  isFields(value) && !value.name ? [fault.required(path, "must not be empty")] : [];

/** The longest name that a Linux host may have. */
const longestHostname = 64;

const hostnameOverride: Check = (value, path) =>
  typeof value === "string" && value.length > longestHostname
    ? [fault.tooLong(path, longestHostname)]
    : namedIfSet("subdomain")(value, path);

/** Faults of one field that another forbids: `why` says which. */
const exclude = (spec: Fields, path: string, names: readonly string[], why: string): FieldFault[] =>
  names.filter((name) => spec[name] === true).map((name) => fault.forbidden(`${path}.${name}`, why));

/** A container sees the whole of /proc only in a namespace of users. */
function procMountFaults(spec: Fields, path: string): FieldFault[] {
  return allContainers(spec, path)
    .filter(([container]) => at(container, "securityContext.procMount") === "Unmasked")
    .map(([, where]) =>
      fault.invalid(`${where}.securityContext.procMount`, "Unmasked", "`hostUsers` must be false to use `Unmasked`"),
    );
}

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
  if (value.hostUsers === false)
    faults.push(...exclude(value, path, ["hostNetwork", "hostPID", "hostIPC"], "when `hostUsers` is false"));
  else faults.push(...procMountFaults(value, path));
  if (value.hostnameOverride !== undefined && value.hostnameOverride !== null)
    for (const name of ["hostNetwork", "setHostnameAsFQDN"])
      if (value[name] === true)
        faults.push(fault.forbidden(`${path}.hostnameOverride`, `may not be specified when ${name} is true`));
  const os = fieldsOf(value.os).name;
  if (os === "linux") faults.push(...linuxFaults(value, path));
  if (os === "windows") faults.push(...windowsFaults(value, path));
  faults.push(...hostProcessFaults(value, path));
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
  ["hostnameOverride", hostnameOverride],
  ["dnsConfig.options[]", dnsOption],
  ["activeDeadlineSeconds", within(1, largest)],
  ["hostAliases[].ip", ipAddress],
  ["hostAliases[].hostnames[]", mustBeName("subdomain")],
  ["dnsConfig.nameservers[]", ipAddress],
  ["dnsConfig.searches[]", search],
  ["readinessGates[].conditionType", qualified],
  // The real server names the structure, and not its field.
  ["os", (value, path) => (isFields(value) ? oneOf(["linux", "windows"])(value.name, path) : [])],
  ...resourceRules,
  ...schedulingRules,
  ...securityRules,
  ["securityContext.fsGroup", id],
  ["securityContext.supplementalGroups[]", id],
  ["securityContext.fsGroupChangePolicy", exactlyOneOf(["Always", "OnRootMismatch"])],
  ["securityContext.supplementalGroupsPolicy", exactlyOneOf(["Merge", "Strict"])],
  // The other choice is behind a feature gate.
  ["securityContext.seLinuxChangePolicy", exactlyOneOf(["Recursive"])],
  ["securityContext.sysctls", sysctls],
  ...volumeRules,
  ...containerRules,
];
