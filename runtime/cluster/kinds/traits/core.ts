import { at, equal, type Fields, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { isNumber } from "../../exact-json.ts";
import { field, type Traits } from "../resource-type.ts";
import { claimFaults, claimFinalizer, dropSources } from "./claim-faults.ts";
import { dataKeyFaults } from "./field-rules.ts";
import { podSpecFaults } from "./pod-faults.ts";
import { defaultPodSpec, defaultRequests, defaultText, items, made, otherwise } from "./pod-spec.ts";
import { appArmorWarnings, profileFaults } from "./profile-annotations.ts";

/** Size limit of a Secret's or ConfigMap's data in bytes, before base64 (core.MaxSecretSize). */
const dataLimit = 1024 * 1024;

function dataFaults(object: KubeObject, maps: readonly string[]): FieldFault[] {
  const faults: FieldFault[] = [];
  let total = 0;
  for (const map of maps) {
    const data = object[map];
    if (!isFields(data)) continue;
    for (const [key, value] of Object.entries(data)) {
      faults.push(...dataKeyFaults(key, `${map}[${key}]`));
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
  check: (object, old) => [
    ...immutableFaults(object, old, configMapData),
    ...dataFaults(object, configMapData),
    ...Object.keys(fieldsOf(object.data))
      .filter((key) => fieldsOf(object.binaryData)[key] !== undefined)
      .map((key) => fault.invalid(`data[${key}]`, key, "duplicate of key present in binaryData")),
  ],
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
    defaultText(object, "type", "Opaque");
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

export const serviceAccount: Traits = {
  returnsDeleted: true,
  // It keeps only the names of its Secrets.
  prepare(object) {
    for (const reference of items(object, "secrets"))
      for (const name of Object.keys(reference)) if (name !== "name") delete reference[name];
  },
  // Its metadata is all that the real server checks.
  check: () => [],
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
      if (!spec.serviceAccount) otherwise(spec, "serviceAccountName", "default");
    }
    defaultPodSpec(spec);
    defaultRequests(spec);
    otherwise(spec, "enableServiceLinks", true);
  },
  check: (object, old) => [
    ...podSpecFaults(object, "spec", { restart: ["Always", "OnFailure", "Never"] }),
    ...profileFaults(object, "metadata", "spec"),
    ...(old || at(object, "spec.ephemeralContainers") === undefined
      ? []
      : [fault.forbidden("spec.ephemeralContainers", "cannot be set on create")]),
  ],
  warn: appArmorWarnings,
  grace(object) {
    const phase = at(object, "status.phase");
    if (!at(object, "spec.nodeName") || phase === "Succeeded" || phase === "Failed") return 0;
    const seconds = at(object, "spec.terminationGracePeriodSeconds");
    return isNumber(seconds) ? Number(seconds) : 30;
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
      for (const port of items(subset, "ports")) defaultText(port, "protocol", "TCP");
  },
};

export const persistentVolumeClaim: Traits = {
  status: true,
  returnsDeleted: true,
  prepare(object, old) {
    otherwise(made(object, "spec"), "volumeMode", "Filesystem");
    if (old) return;
    dropSources(made(object, "spec"));
    object.status = { phase: "Pending" };
    const finalizers = object.metadata.finalizers ?? [];
    if (!finalizers.includes(claimFinalizer)) object.metadata.finalizers = [...finalizers, claimFinalizer];
  },
  check: (object, old) => (old ? [] : claimFaults(object, "spec")),
};

export const persistentVolume: Traits = {
  status: true,
  returnsDeleted: true,
  prepare(object, old) {
    const spec = made(object, "spec");
    defaultText(spec, "persistentVolumeReclaimPolicy", "Retain");
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
