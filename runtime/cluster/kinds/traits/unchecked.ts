import { at, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldRule, ruleFaults } from "./field-rules.ts";

/** Volumes of storage that Kubernetes drives itself, or no longer does. */
const olderVolumes = [
  ...["awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "flocker"],
  ...["gcePersistentDisk", "gitRepo", "glusterfs", "iscsi", "photonPersistentDisk", "portworxVolume", "quobyte", "rbd"],
  ...["scaleIO", "storageos", "vsphereVolume"],
];

/** Fields of a pod for which the real server has rules, and this cluster has not. */
const podFields: readonly string[] = [
  ...olderVolumes.map((name) => `volumes[].${name}`),
  "securityContext.windowsOptions",
  ...["containers", "initContainers"].map((list) => `${list}[].securityContext.windowsOptions`),
  "schedulingGroup",
];

/** The places of a pod's spec in the kinds that have one. */
const specs: Readonly<Record<string, string>> = {
  Pod: "spec",
  PodTemplate: "template.spec",
  ...Object.fromEntries(
    ["DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"].map((kind) => [
      kind,
      "spec.template.spec",
    ]),
  ),
  CronJob: "spec.jobTemplate.spec.template.spec",
};

const isSet = (value: unknown): boolean => value !== undefined && value !== null;

const warningsAt = (place: string): FieldRule => [
  place,
  (value, path) => (isSet(value) ? [{ reason: "FieldValueInvalid", field: path, message: "" }] : []),
];

const rules = new Map(
  Object.entries(specs).map(([kind, spec]) => [kind, podFields.map((place) => warningsAt(`${spec}.${place}`))]),
);

/** Warnings about the fields of an object that are accepted, and that a real API server would check. */
export function uncheckedWarnings(object: KubeObject): string[] {
  const places = ruleFaults(rules.get(object.kind) ?? [], object, "").map(({ field }) => field);
  const spec = at(object, specs[object.kind] ?? "spec");
  if (isFields(spec) && fieldsOf(spec.os).name === "windows") places.push(`${specs[object.kind]}.os`);
  const annotations = isFields(spec) ? object.metadata.annotations : undefined;
  for (const name of Object.keys(annotations ?? {}))
    if (/^(container\.)?seccomp\.security\.alpha\.kubernetes\.io\//.test(name))
      places.push(`metadata.annotations[${name}]`);
  return places.map((place) => `this cluster does not check ${place}; a real API server has rules for it`);
}
