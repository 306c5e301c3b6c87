import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { below, type Check, type FieldRule, namedIfSet } from "./field-rules.ts";
import { allContainers } from "./pod-spec.ts";

const largestCredentials = 64 * 1024;

const credentials: Check = (value, path) => {
  if (typeof value !== "string") return [];
  if (value === "") return [fault.invalid(path, value, "gmsaCredentialSpec cannot be an empty string")];
  return Buffer.byteLength(value) > largestCredentials
    ? [fault.invalid(path, value, "gmsaCredentialSpec size must be under 64 KiB")]
    : [];
};

const longestDomain = 255;
const longestUser = 104;
const netBiosName = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/s;
const domainName = /^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/** The faults of a Windows user name, with or without a domain before it. */
function userNameFaults(name: string): string[] {
  if (name === "") return ["cannot be an empty string"];
  if ([...name].some((letter) => letter < " " || letter === "\x7f")) return ["cannot contain control characters"];
  const parts = name.split("\\");
  if (parts.length > 2) return ["cannot contain more than one backslash"];
  const user = parts.at(-1) ?? "";
  const domain = parts.length === 2 ? (parts[0] ?? "") : undefined;
  const faults: string[] = [];
  if (domain !== undefined && domain.length > longestDomain)
    faults.push("'s Domain length must be under 256 characters");
  if (domain !== undefined && !netBiosName.test(domain) && !domainName.test(domain))
    faults.push("'s Domain doesn't match the NetBios nor the DNS format");
  if (user === "") faults.push("'s User cannot be empty");
  else if (user.length > longestUser) faults.push("'s User length must not be longer than 104 characters");
  if (/^[. ]+$/.test(user)) faults.push("'s User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user))
    faults.push(`'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]`);
  return faults;
}

const userName: Check = (value, path) =>
  typeof value === "string"
    ? userNameFaults(value).map((why) =>
        fault.invalid(path, value, why.startsWith("'") ? `runAsUserName${why}` : `runAsUserName ${why}`),
      )
    : [];

/** The rules of the Windows options that the security contexts of a pod and of a container share. */
export const windowsOptionRules: readonly FieldRule[] = below("securityContext.windowsOptions", [
  ["gmsaCredentialSpecName", namedIfSet("subdomain")],
  ["gmsaCredentialSpec", credentials],
  ["runAsUserName", userName],
]);

/** Fields for Linux, of a pod and of the security contexts of a pod and of a container. */
const linuxFields = {
  pod: ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"],
  shared: ["appArmorProfile", "seLinuxOptions", "seccompProfile", "runAsUser", "runAsGroup"],
  podContext: [
    ...["fsGroup", "fsGroupChangePolicy", "sysctls", "supplementalGroups", "supplementalGroupsPolicy"],
    "seLinuxChangePolicy",
  ],
  containerContext: ["capabilities", "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount"],
};

/** Faults of the named fields that are set. False is the same as unset for a field that Go has no pointer for. */
function setFaults(owner: unknown, path: string, names: readonly string[]): FieldFault[] {
  const fields = fieldsOf(owner);
  return names
    .filter((name) => fields[name] !== undefined && fields[name] !== null)
    .filter((name) => fields[name] !== false || !["hostPID", "hostIPC"].includes(name))
    .filter((name) => name !== "sysctls" || (fields[name] as unknown[]).length > 0)
    .map((name) => fault.forbidden(`${path}.${name}`, "cannot be set for a windows pod"));
}

/** A pod for Windows has no fields for Linux. */
export function windowsFaults(spec: Fields, path: string): FieldFault[] {
  const { pod, shared, podContext, containerContext } = linuxFields;
  return [
    ...setFaults(spec, path, pod),
    ...setFaults(spec.securityContext, `${path}.securityContext`, [...shared, ...podContext]),
    ...allContainers(spec, path).flatMap(([container, where]) =>
      setFaults(container.securityContext, `${where}.securityContext`, [...shared, ...containerContext]),
    ),
    ...(isFields(spec.resources) ? [fault.forbidden(`${path}.resources`, "may not be set for a windows pod")] : []),
  ];
}

/** A pod for Linux has no options for Windows. */
export function linuxFaults(spec: Fields, path: string): FieldFault[] {
  const owners: (readonly [owner: Fields, path: string])[] = [[spec, path], ...allContainers(spec, path)];
  return owners
    .filter(([owner]) => isFields(at(owner, "securityContext.windowsOptions")))
    .map(([, where]) =>
      fault.forbidden(`${where}.securityContext.windowsOptions`, "windows options cannot be set for a linux pod"),
    );
}

const hostProcessOf = (owner: unknown): unknown => at(owner, "securityContext.windowsOptions.hostProcess") ?? undefined;

/** Either all containers of a pod run as processes of the host, or no container does. They need the network of the host. */
export function hostProcessFaults(spec: Fields, path: string): FieldFault[] {
  const ofPod = hostProcessOf(spec);
  const containers = allContainers(spec, path);
  const faults = containers.flatMap(([container, where]) => {
    const own = hostProcessOf(container);
    return ofPod === undefined || own === undefined || own === ofPod
      ? []
      : [
          fault.invalid(
            `${where}.securityContext.windowsOptions.hostProcess`,
            own,
            `pod hostProcess value must be identical if both are specified, was ${ofPod}`,
          ),
        ];
  });
  const count = containers.filter(([container]) => (hostProcessOf(container) ?? ofPod) === true).length;
  if (count === 0) return faults;
  if (count !== containers.length) {
    const why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
    faults.push(fault.invalid(path, "", why));
  }
  if (spec.hostNetwork !== true) {
    const why = "hostNetwork must be true if pod contains any hostProcess containers";
    faults.push(fault.invalid(`${path}.hostNetwork`, false, why));
  }
  return faults;
}
