import { randomInt } from "node:crypto";
import { isIP } from "node:net";
import { at, equal, type Fields, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { isNumber } from "../../exact-json.ts";
import { labelFaults, nameFaults } from "../names.ts";
import { field, type Traits } from "../resource-type.ts";
import { podSpecFaults, resourceNameFaults } from "./pod-faults.ts";
import { defaultPodSpec, defaultRequests, items, made, otherwise } from "./pod-spec.ts";
import { choiceFaults, isAbove, portNumberFaults, protocols } from "./value-faults.ts";

const dataKey = /^[-._a-zA-Z0-9]+$/;
const dataKeyMessage =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/** Size limit of a Secret's or ConfigMap's data in bytes, before base64 (core.MaxSecretSize). */
const dataLimit = 1024 * 1024;

function dataFaults(object: KubeObject, maps: readonly string[]): FieldFault[] {
  const faults: FieldFault[] = [];
  let total = 0;
  for (const map of maps) {
    const data = object[map];
    if (!isFields(data)) continue;
    for (const [key, value] of Object.entries(data)) {
      if (!dataKey.test(key)) faults.push(fault.invalid(`${map}[${key}]`, key, dataKeyMessage));
      const encoding = map === "binaryData" || object.kind === "Secret" ? "base64" : "utf8";
      total += typeof value === "string" ? Buffer.byteLength(value, encoding) : 0;
    }
  }
  if (total > dataLimit) faults.push(fault.tooLong("", dataLimit));
  return faults;
}

/** Faults of a change to an immutable object: its data and the mark itself must not change. */
function immutableFaults(object: KubeObject, old: KubeObject | undefined, maps: readonly string[]): FieldFault[] {
  if (old?.immutable !== true) return [];
  const faults: FieldFault[] = [];
  if (object.immutable !== true)
    faults.push(fault.forbidden("immutable", "field is immutable when `immutable` is set"));
  for (const map of maps)
    if (!equal(object[map] ?? {}, old[map] ?? {}))
      faults.push(fault.forbidden(map, "field is immutable when `immutable` is set"));
  return faults;
}

const configMapData = ["data", "binaryData"];

export const configMap: Traits = {
  check: (object, old) => [...immutableFaults(object, old, configMapData), ...dataFaults(object, configMapData)],
};

/** Keys that a Secret of a type must have, apart from `kubernetes.io/basic-auth`, which needs one of two. */
const secretKeys: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
};

function secretTypeFaults({ type, data }: KubeObject): FieldFault[] {
  const keys = isFields(data) ? data : {};
  if (type === "kubernetes.io/basic-auth" && keys.username === undefined && keys.password === undefined)
    return ["username", "password"].map((key) => fault.required(`data[${key}]`));
  return (secretKeys[String(type)] ?? []).flatMap((key) => {
    const value = keys[key];
    // A Secret of the type kubernetes.io/tls may have an empty key.
    if (typeof value !== "string" || (value === "" && type === "kubernetes.io/ssh-auth"))
      return [fault.required(`data[${key}]`)];
    if (!key.startsWith(".docker")) return [];
    try {
      JSON.parse(Buffer.from(value, "base64").toString("utf8"));
      return [];
    } catch {
      return [fault.invalid(`data[${key}]`, "<secret contents redacted>", "invalid JSON")];
    }
  });
}

export const secret: Traits = {
  fields: { type: field("type") },
  prepare(object) {
    otherwise(object, "type", "Opaque");
    if (!isFields(object.stringData)) return;
    const data = made(object, "data");
    for (const [key, value] of Object.entries(object.stringData))
      data[key] = Buffer.from(String(value)).toString("base64");
    delete object.stringData;
  },
  check(object, old) {
    const faults = [
      ...immutableFaults(object, old, ["data"]),
      ...dataFaults(object, ["data"]),
      ...secretTypeFaults(object),
    ];
    if (old && old.type !== object.type) faults.push(fault.invalid("type", object.type, "field is immutable"));
    if (
      object.type === "kubernetes.io/service-account-token" &&
      !object.metadata.annotations?.["kubernetes.io/service-account.name"]
    )
      faults.push(fault.required("metadata.annotations[kubernetes.io/service-account.name]"));
    return faults;
  },
};

const securityLevels = ["privileged", "baseline", "restricted"];

/** Labels of pod security, which an admission plugin of the real server reads. */
function podSecurityFaults({ metadata }: KubeObject): FieldFault[] {
  return Object.entries(metadata.labels ?? {}).flatMap(([label, value]) => {
    const found = /^pod-security\.kubernetes\.io\/(?:enforce|audit|warn)(-version)?$/.exec(label);
    if (!found) return [];
    const field = `metadata.labels[${label}]`;
    if (found[1] === undefined)
      return securityLevels.includes(value)
        ? []
        : [fault.invalid(field, value, `must be one of ${securityLevels.join(", ")}`)];
    return /^(latest|v1\.(0|[1-9]\d*))$/.test(value) ? [] : [fault.invalid(field, value, 'must be "latest" or "v1.x"')];
  });
}

export const namespace: Traits = {
  check: podSecurityFaults,
  nameRule: "label",
  fields: { "status.phase": field("status.phase") },
  status: true,
  returnsDeleted: true,
  prepare(object, old) {
    object.metadata.labels = { ...object.metadata.labels, "kubernetes.io/metadata.name": object.metadata.name ?? "" };
    if (old) return;
    object.spec = { ...(isFields(object.spec) ? object.spec : {}), finalizers: ["kubernetes"] };
    object.status = { phase: "Active" };
  },
};

export const pod: Traits = {
  status: true,
  returnsDeleted: true,
  generation: true,
  fields: {
    "spec.nodeName": field("spec.nodeName"),
    "spec.restartPolicy": field("spec.restartPolicy"),
    "spec.schedulerName": field("spec.schedulerName"),
    "spec.serviceAccountName": field("spec.serviceAccountName"),
    "spec.hostNetwork": (object) => String(at(object, "spec.hostNetwork") === true),
    "status.phase": field("status.phase"),
    "status.podIP": field("status.podIP"),
    "status.nominatedNodeName": field("status.nominatedNodeName"),
  },
  prepare(object, old) {
    const spec = made(object, "spec");
    if (!old) {
      object.status = { phase: "Pending", qosClass: "BestEffort" };
      otherwise(spec, "serviceAccountName", "default");
    }
    defaultPodSpec(spec);
    defaultRequests(spec);
    otherwise(spec, "enableServiceLinks", true);
  },
  check: (object) => podSpecFaults(object, "spec", { restart: ["Always", "OnFailure", "Never"] }),
  grace(object) {
    const phase = at(object, "status.phase");
    if (!at(object, "spec.nodeName") || phase === "Succeeded" || phase === "Failed") return 0;
    const seconds = at(object, "spec.terminationGracePeriodSeconds");
    return isNumber(seconds) ? Number(seconds) : 30;
  },
};

/** A random cluster IP of 10.96.0.0/12, kubeadm's range. Nothing routes to it, and duplicates are unlikely. */
function anyClusterIp(): string {
  return `10.${96 + randomInt(16)}.${randomInt(256)}.${randomInt(1, 255)}`;
}

/** Faults of a port's name. */
function portNameFaults(name: string, path: string): FieldFault[] {
  const invalid = (detail: string) => fault.invalid(path, name, detail);
  return [
    ...(name.length > 15 ? [invalid("must be no more than 15 characters")] : []),
    ...(/^[-a-z0-9]+$/.test(name)
      ? []
      : [invalid("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")]),
    ...(/[a-z]/.test(name) ? [] : [invalid("must contain at least one letter (a-z)")]),
    ...(name.includes("--") ? [invalid("must not contain consecutive hyphens")] : []),
    ...(/^-|-$/.test(name) ? [invalid("must not begin or end with a hyphen")] : []),
  ];
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

export const service: Traits = {
  nameRule: "label1035",
  status: true,
  createOnUpdate: true,
  returnsDeleted: true,
  fields: { "spec.clusterIP": field("spec.clusterIP"), "spec.type": field("spec.type") },
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "type", "ClusterIP");
    otherwise(spec, "sessionAffinity", "None");
    for (const port of items(spec, "ports")) {
      otherwise(port, "protocol", "TCP");
      if (!port.targetPort) port.targetPort = port.port;
    }
    if (!old) object.status = { loadBalancer: {} };
    if (spec.type === "ExternalName") return;
    const before = old && isFields(old.spec) ? old.spec : {};
    otherwise(spec, "clusterIP", before.clusterIP ?? anyClusterIp());
    otherwise(spec, "clusterIPs", [spec.clusterIP]);
    otherwise(spec, "ipFamilies", ["IPv4"]);
    otherwise(spec, "ipFamilyPolicy", "SingleStack");
    otherwise(spec, "internalTrafficPolicy", "Cluster");
    if (spec.type === "NodePort" || spec.type === "LoadBalancer") otherwise(spec, "externalTrafficPolicy", "Cluster");
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

const involved = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

export const event: Traits = {
  createOnUpdate: true,
  fields: {
    ...Object.fromEntries(involved.map((name) => [`involvedObject.${name}`, field(`involvedObject.${name}`)])),
    reason: field("reason"),
    reportingComponent: field("reportingComponent"),
    type: field("type"),
    source: (object) => String(at(object, "source.component") ?? at(object, "reportingComponent") ?? ""),
  },
  prepare(object) {
    for (const name of ["source", "involvedObject"]) otherwise(object, name, {});
    for (const name of ["firstTimestamp", "lastTimestamp", "eventTime"]) object[name] ??= null;
    for (const name of ["reportingComponent", "reportingInstance"]) otherwise(object, name, "");
  },
  check(object) {
    const about = at(object, "involvedObject.namespace") ?? "";
    const expected = about === "" ? "default" : about;
    const own = object.metadata.namespace;
    if (own === expected || (about === "" && own === "kube-system")) return [];
    return [fault.invalid("involvedObject.namespace", about, "does not match event.namespace")];
  },
};

export const endpoints: Traits = {
  createOnUpdate: true,
  prepare(object) {
    for (const subset of items(object, "subsets"))
      for (const port of items(subset, "ports")) otherwise(port, "protocol", "TCP");
  },
};

export const persistentVolumeClaim: Traits = {
  status: true,
  returnsDeleted: true,
  prepare(object, old) {
    otherwise(made(object, "spec"), "volumeMode", "Filesystem");
    if (!old) object.status = { phase: "Pending" };
  },
  check(object, old) {
    if (old) return [];
    const modes = at(object, "spec.accessModes");
    const storage = at(object, "spec.resources.requests.storage");
    return [
      ...(Array.isArray(modes) && modes.length > 0
        ? []
        : [fault.required("spec.accessModes", "at least 1 access mode is required")]),
      ...(storage === undefined ? [fault.required("spec.resources[storage]")] : []),
      ...(storage === undefined || isAbove(storage, "0")
        ? []
        : [fault.invalid("spec.resources[storage]", storage, "must be greater than zero")]),
    ];
  },
};

/** Names that a quota can count without a prefix. */
const quotaResources = [
  "cpu memory ephemeral-storage requests.cpu requests.memory requests.storage requests.ephemeral-storage",
  "limits.cpu limits.memory limits.ephemeral-storage pods services replicationcontrollers resourcequotas secrets",
  "configmaps persistentvolumeclaims services.nodeports services.loadbalancers",
].flatMap((names) => names.split(" "));

const limitTypes = ["Container", "Pod", "PersistentVolumeClaim"];

/** Pairs of a limit's fields of which the first may not be larger than the second, with the first one's words. */
const limitOrder = [
  ["min", "max", "min value"],
  ["min", "defaultRequest", "min value"],
  ["defaultRequest", "max", "default request value"],
  ["defaultRequest", "default", "default request value"],
  ["default", "max", "default value"],
] as const;

export const limitRange: Traits = {
  createOnUpdate: true,
  prepare(object) {
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
  check: (object) =>
    items(fieldsOf(object.spec), "limits").flatMap((limit, index) => {
      const path = `spec.limits[${index}]`;
      const type = String(limit.type ?? "");
      if (!limitTypes.includes(type) && !type.includes("/"))
        return [fault.invalid(`${path}.type`, type, "must be a standard limit type or fully qualified")];
      return limitOrder.flatMap(([low, high, words]) => {
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
    }),
};

export const resourceQuota: Traits = {
  status: true,
  check: (object) =>
    Object.entries(fieldsOf(at(object, "spec.hard"))).flatMap(([name, value]) => {
      const path = `spec.hard[${name}]`;
      const isStandard = quotaResources.includes(name) || /^(requests\.)?hugepages-/.test(name);
      const faults = resourceNameFaults(name, path, isStandard);
      if (!name.includes("/") && !isStandard)
        faults.push(fault.invalid(path, name, "must be a standard resource for quota"));
      if (isAbove("0", value)) faults.push(fault.invalid(path, value, "must be greater than or equal to 0"));
      return faults;
    }),
};

export const persistentVolume: Traits = {
  status: true,
  returnsDeleted: true,
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "persistentVolumeReclaimPolicy", "Retain");
    otherwise(spec, "volumeMode", "Filesystem");
    if (!old) object.status = { phase: "Pending" };
  },
};

export const podTemplate: Traits = {
  returnsDeleted: true,
  generation: true,
  prepare: (object) => defaultPodSpec(made(made(object, "template") as Fields, "spec")),
};

export const node: Traits = {
  status: true,
  fields: { "spec.unschedulable": (object) => String(at(object, "spec.unschedulable") === true) },
  prepare: (object) => void made(object, "spec"),
};
