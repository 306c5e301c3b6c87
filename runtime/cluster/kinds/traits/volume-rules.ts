import { fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { qualifiedNameFaults } from "../names.ts";
import { claimFaults } from "./claim-faults.ts";
import {
  below,
  type Check,
  type FieldRule,
  labels,
  named,
  objectsIn,
  oneOf,
  present,
  relativePath,
  within,
} from "./field-rules.ts";
import { amountReference } from "./resource-rules.ts";
import { storageRules } from "./storage-rules.ts";
import { isAbove } from "./value-faults.ts";

/** The permissions of a projected file. */
const fileMode = within(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive");

/** A volume has one source. */
const volumeSource: Check = (value, path) => {
  if (!isFields(value)) return [];
  const [, ...more] = objectsIn(
    value,
    Object.keys(value).filter((name) => name !== "name"),
  );
  return more.map((source) => fault.forbidden(`${path}.${source}`, "may not specify more than 1 volume type"));
};

const projectedItems: readonly FieldRule[] = [
  ["items[].key", present()],
  ["items[].path", present(), relativePath],
  ["items[].mode", fileMode],
];

/** The fields of a pod that a file may hold. */
const fileFields = ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/** Further fields that the API can select pods by. */
const otherFields = [
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.schedulerName",
  "spec.serviceAccountName",
  "status.phase",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];

/** The files of a downward API. Their faults are at the volume, and not at the file. */
const downwardFiles: Check = (value, path) => {
  if (!isFields(value)) return [];
  const files = Array.isArray(value.items) ? value.items.filter(isFields) : [];
  return files.flatMap((file): FieldFault[] => {
    const { fieldRef, resourceFieldRef } = file;
    const faults = [...present()(file.path, `${path}.path`), ...relativePath(file.path, `${path}.path`)];
    if (isFields(fieldRef)) return [...faults, ...fileField(fieldRef.fieldPath, `${path}.fieldRef.fieldPath`)];
    if (isFields(resourceFieldRef)) {
      const where = `${path}.resourceFieldRef`;
      const name = present()(resourceFieldRef.containerName, `${where}.containerName`);
      return [...faults, ...(name.length > 0 ? name : amountReference(resourceFieldRef, where))];
    }
    return [...faults, fault.required(path, "one of fieldRef and resourceFieldRef is required")];
  });
};

const fileField: Check = (value, path) => {
  const text = String(value ?? "");
  if (text === "") return [fault.required(path)];
  if (fileFields.includes(text) || /^metadata\.(annotations|labels)\['.*'\]$/s.test(text)) return [];
  return otherFields.includes(text)
    ? [fault.unsupported(path, value, fileFields)]
    : [fault.invalid(path, value, `error converting fieldPath: field label not supported: ${text}`)];
};

const oneProjection: Check = (value, path) =>
  isFields(value) && objectsIn(value, Object.keys(value)).length > 1
    ? [fault.forbidden(path, "may not specify more than 1 volume type per source")]
    : [];

const noStepUp: Check = (value, path) =>
  String(value ?? "")
    .split("/")
    .includes("..")
    ? [fault.invalid(path, value, "must not contain '..'")]
    : [];

const absolute: Check = (value, path) =>
  typeof value === "string" && value !== "" && !value.startsWith("/")
    ? [fault.invalid(path, value, "must be an absolute path")]
    : [];

const hostPathTypes = [
  ...["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"],
];

/** The longest name of a storage driver. */
const longestDriver = 63;

const driverName: Check = (value, path) =>
  typeof value === "string" && value.length > longestDriver
    ? [fault.tooLong(path, longestDriver)]
    : named("subdomain")(typeof value === "string" ? value.toLowerCase() : value, path);

/** The metadata of a claim that is made for a pod: only labels and annotations. */
const claimMetadata: Check = (value, path) => {
  if (!isFields(value)) return [];
  const others = Object.entries(value).flatMap(([name, one]) =>
    ["labels", "annotations"].includes(name) || one === "" || one === null || (name === "generation" && one === 0)
      ? []
      : [name],
  );
  return [
    ...others.map((name) => fault.forbidden(`${path}.${name}`, "cannot be set")),
    ...labels(value.labels, `${path}.labels`),
    ...Object.keys(fieldsOf(value.annotations)).flatMap((key) =>
      qualifiedNameFaults(key.toLowerCase()).map((text) => fault.invalid(`${path}.annotations`, key, text)),
    ),
  ];
};

/** The rules of a pod's volumes. */
export const volumeRules: readonly FieldRule[] = below("volumes[]", [
  ["", volumeSource],
  ...storageRules,
  [
    "emptyDir.sizeLimit",
    (value, path) =>
      isAbove("0", value) ? [fault.forbidden(path, "SizeLimit field must be a valid resource quantity")] : [],
  ],
  ["configMap.name", present()],
  ["secret.secretName", present()],
  ...["configMap", "secret"].flatMap((source): FieldRule[] => [
    [`${source}.defaultMode`, fileMode],
    ...below(source, projectedItems),
  ]),
  ["downwardAPI.defaultMode", fileMode],
  ["downwardAPI", downwardFiles],
  ["hostPath.path", present(), noStepUp],
  ["hostPath.type", oneOf(hostPathTypes)],
  ["csi.driver", present(), driverName],
  ["csi.nodePublishSecretRef.name", present(), named("subdomain")],
  ["nfs.path", absolute],
  ["persistentVolumeClaim.claimName", present()],
  ["ephemeral.volumeClaimTemplate", present()],
  ["ephemeral.volumeClaimTemplate", (value, path) => (isFields(value) ? claimFaults(value, `${path}.spec`) : [])],
  ["ephemeral.volumeClaimTemplate.metadata", claimMetadata],
  ["image.reference", present()],
  ["projected.defaultMode", fileMode],
  ["projected.sources[]", oneProjection],
  ["projected.sources[].secret.name", present()],
  ["projected.sources[].configMap.name", present()],
  ...["configMap", "secret"].flatMap((source) => below(`projected.sources[].${source}`, projectedItems)),
  ["projected.sources[].downwardAPI", downwardFiles],
  ["projected.sources[].serviceAccountToken.path", present(), relativePath],
  [
    "projected.sources[].serviceAccountToken.expirationSeconds",
    within(600, Number.POSITIVE_INFINITY, "may not specify a duration less than 10 minutes"),
  ],
]);
