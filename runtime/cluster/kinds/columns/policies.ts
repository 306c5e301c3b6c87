import { at, type KubeObject } from "../../api/object.ts";
import type { Column } from "../resource-type.ts";
import { ageColumn, count, list, name, number, selector, shown, string, text } from "./cells.ts";

export const lease: Column[] = [name, text("Holder", (object) => string(object, "spec.holderIdentity")), ageColumn];

const subjects = (kind: string) => (object: KubeObject) =>
  list(object, "subjects")
    .filter((one) => string(one, "kind") === kind)
    .map((one) =>
      kind === "ServiceAccount" ? `${string(one, "namespace")}/${string(one, "name")}` : string(one, "name"),
    )
    .join(", ");

export const binding: Column[] = [
  name,
  text("Role", (object) => `${string(object, "roleRef.kind")}/${string(object, "roleRef.name")}`),
  ageColumn,
  text("Users", subjects("User"), 1),
  text("Groups", subjects("Group"), 1),
  text("ServiceAccounts", subjects("ServiceAccount"), 1),
];

export const ingress: Column[] = [
  name,
  shown("Class", "spec.ingressClassName"),
  text(
    "Hosts",
    (object) =>
      list(object, "spec.rules")
        .map((rule) => string(rule, "host"))
        .filter(Boolean)
        .join(",") || "*",
  ),
  text("Address", (object) =>
    list(object, "status.loadBalancer.ingress")
      .map((one) => string(one, "ip") || string(one, "hostname"))
      .join(","),
  ),
  text("Ports", (object) => (list(object, "spec.tls").length > 0 ? "80, 443" : "80")),
  ageColumn,
];

export const networkPolicy: Column[] = [
  name,
  text("Pod-Selector", (object) => selector(at(object, "spec.podSelector"))),
  ageColumn,
];

const orNotApplicable = (path: string) => (object: KubeObject) => string(object, path) || "N/A";

export const podDisruptionBudget: Column[] = [
  name,
  text("Min Available", orNotApplicable("spec.minAvailable")),
  text("Max Unavailable", orNotApplicable("spec.maxUnavailable")),
  count("Allowed Disruptions", "status.disruptionsAllowed"),
  ageColumn,
];

export const horizontalPodAutoscaler: Column[] = [
  name,
  text(
    "Reference",
    (object) => `${string(object, "spec.scaleTargetRef.kind")}/${string(object, "spec.scaleTargetRef.name")}`,
  ),
  text(
    "Targets",
    (object) =>
      list(object, "spec.metrics")
        .map(() => "<unknown>")
        .join(", ") || "<none>",
  ),
  text("MinPods", (object) => string(object, "spec.minReplicas") || "<unset>"),
  text("MaxPods", (object) => String(number(object, "spec.maxReplicas"))),
  text("Replicas", (object) => String(number(object, "status.currentReplicas"))),
  ageColumn,
];

export const endpointSlice: Column[] = [
  name,
  text("AddressType", (object) => string(object, "addressType")),
  text(
    "Ports",
    (object) =>
      list(object, "ports")
        .map((port) => string(port, "port"))
        .join(",") || "<unset>",
  ),
  text(
    "Endpoints",
    (object) =>
      list(object, "endpoints")
        .flatMap((one) => list(one, "addresses"))
        .join(",") || "<unset>",
  ),
  ageColumn,
];

export const storageClass: Column[] = [
  {
    ...name,
    cell: (object) =>
      object.metadata.annotations?.["storageclass.kubernetes.io/is-default-class"] === "true"
        ? `${object.metadata.name} (default)`
        : (object.metadata.name ?? ""),
  },
  text("Provisioner", (object) => string(object, "provisioner")),
  text("ReclaimPolicy", (object) => string(object, "reclaimPolicy")),
  text("VolumeBindingMode", (object) => string(object, "volumeBindingMode")),
  text("AllowVolumeExpansion", (object) => String(at(object, "allowVolumeExpansion") === true)),
  ageColumn,
];

export const webhookConfiguration: Column[] = [
  name,
  { name: "Webhooks", type: "integer", cell: (object) => list(object, "webhooks").length },
  ageColumn,
];

export const priorityClass: Column[] = [
  name,
  count("Value", "value"),
  { name: "Global-Default", type: "boolean", cell: (object) => at(object, "globalDefault") === true },
  ageColumn,
  text("PreemptionPolicy", (object) => string(object, "preemptionPolicy")),
];

export const apiService: Column[] = [
  name,
  text("Service", (object) =>
    at(object, "spec.service")
      ? `${string(object, "spec.service.namespace")}/${string(object, "spec.service.name")}`
      : "Local",
  ),
  text(
    "Available",
    (object) =>
      string(
        list(object, "status.conditions").find((one) => string(one, "type") === "Available"),
        "status",
      ) || "Unknown",
  ),
  ageColumn,
];
