import { at, type KubeObject } from "../../api/object.ts";
import { since } from "../age.ts";
import type { Column } from "../resource-type.ts";
import {
  ageColumn,
  containers,
  count,
  createdAt,
  list,
  name,
  number,
  pairs,
  shown,
  size,
  string,
  text,
} from "./cells.ts";

export const configMap: Column[] = [
  name,
  text("Data", (object) => size(object, "data") + size(object, "binaryData")),
  ageColumn,
];

export const secret: Column[] = [
  name,
  shown("Type", "type"),
  text("Data", (object) => size(object, "data")),
  ageColumn,
];

export const namespace: Column[] = [name, shown("Status", "status.phase"), ageColumn];

export const plain: Column[] = [name, ageColumn];

export const dated: Column[] = [name, createdAt];

const containerStatuses = (object: KubeObject) => list(object, "status.containerStatuses");

/** The STATUS column of `kubectl get pods`: the phase, or the reason why a container waits or ended. */
function podStatus(object: KubeObject): string {
  let status = string(object, "status.reason") || string(object, "status.phase") || "Unknown";
  for (const container of containerStatuses(object)) {
    status = string(container, "state.waiting.reason") || string(container, "state.terminated.reason") || status;
  }
  if (object.metadata.deletionTimestamp)
    return string(object, "status.reason") === "NodeLost" ? "Unknown" : "Terminating";
  return status;
}

export const pod: Column[] = [
  name,
  text("Ready", (object) => {
    const ready = containerStatuses(object).filter((one) => at(one, "ready") === true).length;
    return `${ready}/${list(object, "spec.containers").length}`;
  }),
  text("Status", podStatus),
  text("Restarts", (object) =>
    String(containerStatuses(object).reduce<number>((sum, one) => sum + number(one, "restartCount"), 0)),
  ),
  ageColumn,
  shown("IP", "status.podIP", 1),
  shown("Node", "spec.nodeName", 1),
  shown("Nominated Node", "status.nominatedNodeName", 1),
  text("Readiness Gates", (object) => list(object, "spec.readinessGates").length || "<none>", 1),
];

function ports(object: KubeObject): string {
  return (
    list(object, "spec.ports")
      .map((port) => {
        const node = number(port, "nodePort");
        return `${number(port, "port")}${node ? `:${node}` : ""}/${string(port, "protocol") || "TCP"}`;
      })
      .join(",") || "<none>"
  );
}

function externalAddress(object: KubeObject): string {
  const type = string(object, "spec.type");
  if (type === "ExternalName") return string(object, "spec.externalName");
  const ips = list(object, "spec.externalIPs").join(",");
  if (type !== "LoadBalancer") return ips || "<none>";
  const balancers = list(object, "status.loadBalancer.ingress").map(
    (one) => string(one, "ip") || string(one, "hostname"),
  );
  return [...balancers, ...(ips ? [ips] : [])].join(",") || "<pending>";
}

export const service: Column[] = [
  name,
  shown("Type", "spec.type"),
  shown("Cluster-IP", "spec.clusterIP"),
  text("External-IP", externalAddress),
  text("Port(s)", ports),
  ageColumn,
  text("Selector", (object) => pairs(at(object, "spec.selector")), 1),
];

function nodeStatus(object: KubeObject): string {
  const ready = list(object, "status.conditions").find((one) => string(one, "type") === "Ready");
  const word = !ready ? "Unknown" : string(ready, "status") === "True" ? "Ready" : "NotReady";
  return at(object, "spec.unschedulable") === true ? `${word},SchedulingDisabled` : word;
}

const roleLabel = "node-role.kubernetes.io/";
const address = (type: string) => (object: KubeObject) =>
  string(
    list(object, "status.addresses").find((one) => string(one, "type") === type),
    "address",
  ) || "<none>";

export const node: Column[] = [
  name,
  text("Status", nodeStatus),
  text(
    "Roles",
    (object) =>
      Object.keys(object.metadata.labels ?? {})
        .filter((key) => key.startsWith(roleLabel))
        .map((key) => key.slice(roleLabel.length))
        .join(",") || "<none>",
  ),
  ageColumn,
  text("Version", (object) => string(object, "status.nodeInfo.kubeletVersion")),
  text("Internal-IP", address("InternalIP"), 1),
  text("External-IP", address("ExternalIP"), 1),
  shown("OS-Image", "status.nodeInfo.osImage", 1),
  shown("Kernel-Version", "status.nodeInfo.kernelVersion", 1),
  shown("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", 1),
];

/** The time when an Event was last seen: the newest of its time fields, which differ between the two groups. */
function lastSeen(object: KubeObject, now: number): string {
  const seen = at(object, "series.lastObservedTime") ?? at(object, "lastTimestamp") ?? at(object, "eventTime");
  return since(seen ?? object.metadata.creationTimestamp, now);
}

export const event: Column[] = [
  text("Last Seen", lastSeen),
  text("Type", (object) => string(object, "type")),
  text("Reason", (object) => string(object, "reason")),
  text("Object", (object) => {
    const kind = string(object, "involvedObject.kind").toLowerCase();
    const target = string(object, "involvedObject.name");
    return target ? `${kind}/${target}` : kind;
  }),
  text("Subobject", (object) => string(object, "involvedObject.fieldPath"), 1),
  text("Source", (object) => string(object, "source.component") || string(object, "reportingComponent"), 1),
  text("Message", (object) => string(object, "message").trim()),
  text("First Seen", (object, now) => since(at(object, "firstTimestamp") ?? at(object, "eventTime"), now), 1),
  text("Count", (object) => String(number(object, "series.count") || number(object, "count") || 1), 1),
  { ...name, priority: 1 },
];

export const endpoints: Column[] = [
  name,
  text("Endpoints", (object) => {
    const all = list(object, "subsets").flatMap((subset) =>
      list(subset, "addresses").flatMap((one) =>
        list(subset, "ports").map((port) => `${string(one, "ip")}:${number(port, "port")}`),
      ),
    );
    return all.slice(0, 3).join(",") + (all.length > 3 ? ` + ${all.length - 3} more...` : "") || "<none>";
  }),
  ageColumn,
];

export const persistentVolumeClaim: Column[] = [
  name,
  text("Status", (object) => (object.metadata.deletionTimestamp ? "Terminating" : string(object, "status.phase"))),
  text("Volume", (object) => string(object, "spec.volumeName")),
  text("Capacity", (object) => string(object, "status.capacity.storage")),
  text("Access Modes", (object) => list(object, "status.accessModes").join(",")),
  text("StorageClass", (object) => string(object, "spec.storageClassName")),
  text("VolumeAttributesClass", (object) => string(object, "spec.volumeAttributesClassName") || "<unset>"),
  ageColumn,
  shown("VolumeMode", "spec.volumeMode", 1),
];

export const podTemplate: Column[] = [
  name,
  ...containers("template.spec.containers").map((column) => ({ ...column, priority: 0 })),
  text("Pod Labels", (object) => pairs(at(object, "template.metadata.labels"))),
];

export const replicationController: Column[] = [
  name,
  count("Desired", "spec.replicas"),
  count("Current", "status.replicas"),
  count("Ready", "status.readyReplicas"),
  ageColumn,
  ...containers("spec.template.spec.containers"),
  text("Selector", (object) => pairs(at(object, "spec.selector")), 1),
];

const amounts = (spec: string) => (object: KubeObject) => {
  const hard = at(object, "spec.hard");
  const keys = Object.keys((hard as object | undefined) ?? {}).filter(
    (key) => key.startsWith("limits.") === (spec === "limit"),
  );
  return keys
    .sort()
    .map(
      (key) =>
        `${key}: ${string(at(object, "status.used"), key) || "0"}/${String((hard as Record<string, unknown>)[key])}`,
    )
    .join(", ");
};

export const resourceQuota: Column[] = [
  name,
  text("Request", amounts("request")),
  text("Limit", amounts("limit")),
  ageColumn,
];
