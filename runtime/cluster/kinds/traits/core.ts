import { randomInt } from "node:crypto";
import { at, equal, type Fields, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { isNumber } from "../../exact-json.ts";
import { field, type Traits } from "../resource-type.ts";
import { defaultPodSpec, items, made, otherwise, podSpecFaults } from "./pod-spec.ts";

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
  if (total > dataLimit)
    faults.push({
      reason: "FieldValueTooLong",
      field: "",
      message: `Too long: may not be more than ${dataLimit} bytes`,
    });
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
    const faults = [...immutableFaults(object, old, ["data"]), ...dataFaults(object, ["data"])];
    if (old && old.type !== object.type) faults.push(fault.invalid("type", object.type, "field is immutable"));
    if (
      object.type === "kubernetes.io/service-account-token" &&
      !object.metadata.annotations?.["kubernetes.io/service-account.name"]
    )
      faults.push(fault.required("metadata.annotations[kubernetes.io/service-account.name]"));
    return faults;
  },
};

export const namespace: Traits = {
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
    otherwise(spec, "enableServiceLinks", true);
  },
  check: (object) => podSpecFaults(object, "spec"),
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
      otherwise(port, "targetPort", port.port);
    }
    if (!old) object.status = { loadBalancer: {} };
    if (spec.type === "ExternalName") return;
    const before = old && isFields(old.spec) ? old.spec : {};
    otherwise(spec, "clusterIP", before.clusterIP ?? anyClusterIp());
    otherwise(spec, "clusterIPs", [spec.clusterIP]);
    otherwise(spec, "ipFamilies", ["IPv4"]);
    otherwise(spec, "ipFamilyPolicy", "SingleStack");
    otherwise(spec, "internalTrafficPolicy", "Cluster");
  },
  check(object, old) {
    const faults: FieldFault[] = [];
    const spec = isFields(object.spec) ? object.spec : {};
    if (spec.type !== "ExternalName" && spec.clusterIP !== "None" && items(spec, "ports").length === 0)
      faults.push(fault.required("spec.ports"));
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

export const persistentVolumeClaim: Traits = {
  status: true,
  returnsDeleted: true,
  prepare(object, old) {
    otherwise(made(object, "spec"), "volumeMode", "Filesystem");
    if (!old) object.status = { phase: "Pending" };
  },
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
