import { groupVersion } from "../../api/object.ts";
import { builtInSchema } from "../../schema/index.ts";
import * as core from "../columns/core.ts";
import * as policies from "../columns/policies.ts";
import * as workloads from "../columns/workloads.ts";
import { field, type ResourceType, storedVerbs, type Traits } from "../resource-type.ts";
import { horizontalPodAutoscaler } from "../traits/autoscaler.ts";
import * as coreTraits from "../traits/core.ts";
import { customResourceDefinition } from "../traits/definitions.ts";
import * as jobs from "../traits/jobs.ts";
import * as networking from "../traits/networking.ts";
import * as policyTraits from "../traits/policies.ts";
import * as quotas from "../traits/quotas.ts";
import { service } from "../traits/service.ts";
import * as workloadTraits from "../traits/workloads.ts";
import { autoscalerConversion } from "./autoscaling-conversion.ts";
import { eventConversion } from "./event-conversion.ts";

/** The properties of a kind in the table below; the others are derived from its name. */
interface Row extends Traits {
  plural?: string;
  cluster?: true;
  verbs?: readonly string[];
  fromStorage?: ResourceType["fromStorage"];
  toStorage?: ResourceType["toStorage"];
  storage?: string;
  /** The apiVersion of the stored form, if it differs from the served one. */
  storedAs?: string;
}

const extensions = ["api-extensions"];
const withoutDeleteCollection = storedVerbs.filter((verb) => verb !== "deletecollection");
const strict: Traits = { needsResourceVersion: true };

/** Every built-in resource, by group and version, in the order discovery lists them. */
const table: Record<string, Record<string, Row>> = {
  v1: {
    Binding: { verbs: ["create"] },
    ConfigMap: { shortNames: ["cm"], columns: core.configMap, ...coreTraits.configMap },
    Endpoints: { plural: "endpoints", shortNames: ["ep"], columns: core.endpoints, ...coreTraits.endpoints },
    Event: { shortNames: ["ev"], columns: core.event, ...coreTraits.event },
    LimitRange: { shortNames: ["limits"], columns: core.dated, ...quotas.limitRange },
    Namespace: {
      cluster: true,
      shortNames: ["ns"],
      columns: core.namespace,
      verbs: withoutDeleteCollection,
      ...coreTraits.namespace,
    },
    Node: { cluster: true, shortNames: ["no"], columns: core.node, ...coreTraits.node },
    PersistentVolumeClaim: {
      shortNames: ["pvc"],
      columns: core.persistentVolumeClaim,
      ...coreTraits.persistentVolumeClaim,
    },
    PersistentVolume: { cluster: true, shortNames: ["pv"], columns: core.plain, ...coreTraits.persistentVolume },
    Pod: { shortNames: ["po"], categories: ["all"], columns: core.pod, ...coreTraits.pod },
    PodTemplate: { columns: core.podTemplate, ...coreTraits.podTemplate },
    ReplicationController: {
      shortNames: ["rc"],
      categories: ["all"],
      columns: core.replicationController,
      ...workloadTraits.replicationController,
    },
    ResourceQuota: {
      shortNames: ["quota"],
      columns: core.resourceQuota,
      returnsDeleted: true,
      ...quotas.resourceQuota,
    },
    Secret: { columns: core.secret, ...coreTraits.secret },
    ServiceAccount: { shortNames: ["sa"], columns: core.plain, ...coreTraits.serviceAccount },
    Service: { shortNames: ["svc"], categories: ["all"], columns: core.service, ...service },
  },
  "apiregistration.k8s.io/v1": {
    APIService: { cluster: true, categories: extensions, columns: policies.apiService, ...policyTraits.apiService },
  },
  "apps/v1": {
    ControllerRevision: { columns: core.plain },
    DaemonSet: { shortNames: ["ds"], columns: workloads.daemonSet, ...workloadTraits.daemonSet },
    Deployment: { shortNames: ["deploy"], columns: workloads.deployment, ...workloadTraits.deployment },
    ReplicaSet: { shortNames: ["rs"], columns: workloads.replicaSet, ...workloadTraits.replicaSet },
    StatefulSet: { shortNames: ["sts"], columns: workloads.statefulSet, ...workloadTraits.statefulSet },
  },
  "events.k8s.io/v1": {
    Event: {
      shortNames: ["ev"],
      columns: core.event,
      storage: "events",
      storedAs: "v1",
      ...coreTraits.event,
      ...eventConversion,
    },
  },
  "authentication.k8s.io/v1": {
    SelfSubjectReview: { cluster: true, verbs: ["create"] },
    TokenReview: { cluster: true, verbs: ["create"] },
  },
  "authorization.k8s.io/v1": {
    LocalSubjectAccessReview: { verbs: ["create"] },
    SelfSubjectAccessReview: { cluster: true, verbs: ["create"] },
    SelfSubjectRulesReview: { cluster: true, verbs: ["create"] },
    SubjectAccessReview: { cluster: true, verbs: ["create"] },
  },
  "autoscaling/v2": {
    HorizontalPodAutoscaler: {
      shortNames: ["hpa"],
      categories: ["all"],
      columns: policies.horizontalPodAutoscaler,
      ...horizontalPodAutoscaler,
    },
  },
  "autoscaling/v1": {
    HorizontalPodAutoscaler: {
      shortNames: ["hpa"],
      categories: ["all"],
      columns: policies.horizontalPodAutoscaler,
      storedAs: "autoscaling/v2",
      ...horizontalPodAutoscaler,
      ...autoscalerConversion,
    },
  },
  "batch/v1": {
    CronJob: { shortNames: ["cj"], columns: workloads.cronJob, ...jobs.cronJob },
    Job: { columns: workloads.job, ...jobs.job },
  },
  "networking.k8s.io/v1": {
    Ingress: { plural: "ingresses", shortNames: ["ing"], columns: policies.ingress, ...networking.ingress },
    IngressClass: { plural: "ingressclasses", cluster: true, columns: core.plain, generation: true },
    NetworkPolicy: {
      plural: "networkpolicies",
      shortNames: ["netpol"],
      columns: policies.networkPolicy,
      ...networking.networkPolicy,
    },
  },
  "policy/v1": {
    PodDisruptionBudget: {
      shortNames: ["pdb"],
      columns: policies.podDisruptionBudget,
      ...policyTraits.podDisruptionBudget,
    },
  },
  "rbac.authorization.k8s.io/v1": {
    ClusterRoleBinding: { cluster: true, columns: policies.binding, ...policyTraits.roleBinding },
    ClusterRole: { cluster: true, columns: core.dated, ...policyTraits.role },
    RoleBinding: { columns: policies.binding, ...policyTraits.roleBinding },
    Role: { columns: core.dated, ...policyTraits.role },
  },
  "storage.k8s.io/v1": {
    CSIDriver: { cluster: true, columns: core.plain, ...strict },
    CSINode: { cluster: true, columns: core.plain, ...strict },
    CSIStorageCapacity: { plural: "csistoragecapacities", columns: core.plain, ...strict },
    VolumeAttachment: { cluster: true, columns: core.plain, status: true, ...strict },
    StorageClass: {
      plural: "storageclasses",
      cluster: true,
      shortNames: ["sc"],
      columns: policies.storageClass,
      ...policyTraits.storageClass,
    },
  },
  "admissionregistration.k8s.io/v1": {
    MutatingWebhookConfiguration: {
      cluster: true,
      categories: extensions,
      columns: policies.webhookConfiguration,
      generation: true,
      ...strict,
    },
    ValidatingWebhookConfiguration: {
      cluster: true,
      categories: extensions,
      columns: policies.webhookConfiguration,
      generation: true,
      ...strict,
    },
  },
  "apiextensions.k8s.io/v1": {
    CustomResourceDefinition: {
      cluster: true,
      columns: core.dated,
      ...customResourceDefinition,
    },
  },
  "scheduling.k8s.io/v1": {
    PriorityClass: {
      plural: "priorityclasses",
      cluster: true,
      shortNames: ["pc"],
      columns: policies.priorityClass,
      generation: true,
    },
  },
  "certificates.k8s.io/v1": {
    CertificateSigningRequest: {
      cluster: true,
      shortNames: ["csr"],
      columns: core.plain,
      status: true,
      fields: { "spec.signerName": field("spec.signerName") },
    },
  },
  "node.k8s.io/v1": {
    RuntimeClass: { plural: "runtimeclasses", cluster: true, columns: core.plain, ...strict },
  },
  "flowcontrol.apiserver.k8s.io/v1": {
    FlowSchema: { cluster: true, columns: core.plain, status: true, generation: true },
    PriorityLevelConfiguration: { cluster: true, columns: core.plain, status: true, generation: true },
  },
  "coordination.k8s.io/v1": {
    Lease: { columns: policies.lease, ...policyTraits.lease },
  },
  "discovery.k8s.io/v1": {
    EndpointSlice: { columns: policies.endpointSlice, ...policyTraits.endpointSlice },
  },
};

function resource(groupVersion: string, kind: string, row: Row): ResourceType {
  const slash = groupVersion.indexOf("/");
  const group = slash < 0 ? "" : groupVersion.slice(0, slash);
  const version = groupVersion.slice(slash + 1);
  const { plural = `${kind.toLowerCase()}s`, cluster, verbs = storedVerbs, storage, storedAs, ...traits } = row;
  return {
    ...traits,
    group,
    version,
    kind,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    namespaced: !cluster,
    storage: storage ?? (group === "" ? plural : `${plural}.${group}`),
    verbs,
    schema: () => builtInSchema(group, version, kind),
    warn: warningsOf(groupVersion, kind, row),
    ...(storedAs === undefined ? {} : { storageSchema: storedSchema(storedAs, kind) }),
  };
}

/** The warnings about what is accepted here without the checks of a real server. */
function warningsOf(groupVersion: string, kind: string, { check, warn, verbs }: Row): Traits["warn"] {
  const isStored = verbs === undefined || verbs.includes("update");
  if (!check && isStored) return () => [schemaAlone(groupVersion, kind)];
  return warn;
}

/** The warning about a kind whose rules beyond the schema, which the real server has in code, are not there. */
const schemaAlone = (groupVersion: string, kind: string): string =>
  `this cluster checks ${groupVersion} ${kind} only by its schema; a real API server has further rules for it`;

function storedSchema(apiVersion: string, kind: string): ResourceType["schema"] {
  const { group, version } = groupVersion(apiVersion);
  return () => builtInSchema(group, version, kind);
}

/** The built-in resources, as types to serve. */
export const builtInResources: readonly ResourceType[] = Object.entries(table).flatMap(([groupVersion, rows]) =>
  Object.entries(rows).map(([kind, row]) => resource(groupVersion, kind, row)),
);
