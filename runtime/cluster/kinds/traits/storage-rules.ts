import { isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { type Check, exactlyOneOf, type FieldRule, named, present, relativePath, within } from "./field-rules.ts";

// The volumes of storage that Kubernetes drives itself, or no longer does. The schema requires their plain texts.

const partition = within(0, 255, "must be between 1 and 255, inclusive");
const logicalUnit = within(0, 255);

/** The prefix of the disk's address depends on the kind of disk. */
const diskAddress: Check = (value, path) => {
  if (!isFields(value)) return [];
  const [prefix, example] =
    value.kind === "Managed"
      ? [
          "/subscriptions/",
          "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ]
      : ["https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"];
  const address = String(value.diskURI ?? "");
  return address.startsWith(prefix) ? [] : [fault.unsupported(`${path}.diskURI`, address, [example])];
};

const isListed = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** Fibre Channel names its targets in one of two ways. One of them needs the number of a logical unit. */
const fibreChannel: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { targetWWNs: targets, wwids, lun } = value;
  const where = `${path}.targetWWNs`;
  if (!isListed(targets))
    return isListed(wwids) ? [] : [fault.required(where, "must specify either targetWWNs or wwids, but not both")];
  return [
    ...(isListed(wwids)
      ? [fault.invalid(where, targets, "targetWWNs and wwids can not be specified simultaneously")]
      : []),
    ...(typeof lun === "number"
      ? logicalUnit(lun, `${path}.lun`)
      : [fault.required(`${path}.lun`, "lun is required if targetWWNs is specified")]),
  ];
};

/** Options of a driver do not use Kubernetes' own namespaces. */
const driverOptions: Check = (value, path) =>
  (isFields(value) ? Object.keys(value) : []).flatMap((key) =>
    /(^|\.)(kubernetes|k8s)\.io$/i.test(key.includes("/") ? key.slice(0, key.indexOf("/")) : key)
      ? [fault.invalid(`${path}[${key}]`, key, "kubernetes.io and k8s.io namespaces are reserved")]
      : [],
  );

const dataset: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { datasetName, datasetUUID } = value;
  const faults: FieldFault[] = [];
  if (!datasetName && !datasetUUID) faults.push(fault.required(path, "one of datasetName and datasetUUID is required"));
  if (datasetName && datasetUUID)
    faults.push(fault.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"));
  if (String(datasetName ?? "").includes("/"))
    faults.push(fault.invalid(`${path}.datasetName`, datasetName, "must not contain '/'"));
  return faults;
};

/** The forms of an iSCSI name, each by its first three letters. */
const nameForms: Readonly<Record<string, RegExp>> = {
  iqn: /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)$/,
  eui: /^eui.[a-zA-Z0-9]{16}$/,
  naa: /^naa.[a-zA-Z0-9]{32}$/,
};

const scsiName: Check = (value, path) => {
  if (typeof value !== "string") return [];
  const form = nameForms[value.slice(0, 3)];
  if (!form) return [fault.invalid(path, value, "must be valid format starting with iqn, eui, or naa")];
  return form.test(value) ? [] : [fault.invalid(path, value, "must be valid format")];
};

/** The longest `<volume name>:<iscsi.targetPortal>` of an initiator. */
const longestInterface = 64;

const scsi: Check = (value, path) => {
  if (!isFields(value) || !isFields(value.iscsi)) return [];
  const { iqn, initiatorName, targetPortal, chapAuthDiscovery, chapAuthSession, secretRef } = value.iscsi;
  const where = `${path}.iscsi`;
  const needsSecret = (chapAuthDiscovery === true || chapAuthSession === true) && !isFields(secretRef);
  const isLong = typeof initiatorName === "string" && `${value.name}:${targetPortal ?? ""}`.length > longestInterface;
  return [
    ...(iqn === "" ? [] : scsiName(iqn, `${where}.iqn`)),
    ...(needsSecret ? [fault.required(`${where}.secretRef`)] : []),
    ...scsiName(initiatorName, `${where}.initiatorname`),
    ...(isLong
      ? [
          fault.invalid(
            `${path}.name`,
            value.name,
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.",
          ),
        ]
      : []),
  ];
};

const longestTenant = 64;

const registry: Check = (value, path) => {
  if (!isFields(value) || typeof value.registry !== "string" || value.registry === "") return [];
  if (String(value.tenant ?? "").length > longestTenant)
    return [fault.required(`${path}.tenant`, "must be a UUID and may not exceed a length of 64 characters")];
  const why = "must be a host:port pair or multiple pairs separated by commas";
  return value.registry
    .split(",")
    .flatMap((pair) =>
      /^(\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(pair) ? [] : [fault.invalid(`${path}.registry`, value.registry, why)],
    );
};

/** The rules of a pod's volume by its source. */
export const storageRules: readonly FieldRule[] = [
  ["awsElasticBlockStore.partition", partition],
  ["azureDisk.cachingMode", exactlyOneOf(["None", "ReadOnly", "ReadWrite"])],
  ["azureDisk.kind", exactlyOneOf(["Dedicated", "Managed", "Shared"])],
  ["azureDisk", diskAddress],
  ["cephfs.monitors", present()],
  ["cinder.secretRef.name", present()],
  ["fc", fibreChannel],
  ["flexVolume.options", driverOptions],
  ["flocker", dataset],
  // The real server names the Go field.
  [
    "gcePersistentDisk.partition",
    (value, path) => partition(value, path.replace("gcePersistentDisk", "persistentDisk")),
  ],
  ["gitRepo.directory", relativePath],
  ["iscsi.lun", logicalUnit],
  ["", scsi],
  ["quobyte", registry],
  ["rbd.monitors", present()],
  ["scaleIO.volumeName", present()],
  ["storageos.volumeName", present(), named("label")],
  ["storageos.volumeNamespace", named("label")],
  ["storageos.secretRef.name", present()],
];
