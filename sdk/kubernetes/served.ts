// biome-ignore-all format: made by test/sdk/kubernetes-types.ts; change that
// biome-ignore-all assist/source/organizeImports: made by test/sdk/kubernetes-types.ts; change that
import type {
  CoreV1Event,
  EventsV1Event,
  V1APIService,
  V1Binding,
  V1CSIDriver,
  V1CSINode,
  V1CSIStorageCapacity,
  V1CertificateSigningRequest,
  V1ClusterRole,
  V1ClusterRoleBinding,
  V1ConfigMap,
  V1ControllerRevision,
  V1CronJob,
  V1CustomResourceDefinition,
  V1DaemonSet,
  V1Deployment,
  V1EndpointSlice,
  V1Endpoints,
  V1FlowSchema,
  V1HorizontalPodAutoscaler,
  V1Ingress,
  V1IngressClass,
  V1Job,
  V1Lease,
  V1LimitRange,
  V1LocalSubjectAccessReview,
  V1MutatingWebhookConfiguration,
  V1Namespace,
  V1NetworkPolicy,
  V1Node,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1PodTemplate,
  V1PriorityClass,
  V1PriorityLevelConfiguration,
  V1ReplicaSet,
  V1ReplicationController,
  V1ResourceQuota,
  V1Role,
  V1RoleBinding,
  V1RuntimeClass,
  V1Secret,
  V1SelfSubjectAccessReview,
  V1SelfSubjectReview,
  V1SelfSubjectRulesReview,
  V1Service,
  V1ServiceAccount,
  V1StatefulSet,
  V1StorageClass,
  V1SubjectAccessReview,
  V1TokenReview,
  V1ValidatingWebhookConfiguration,
  V1VolumeAttachment,
  V2HorizontalPodAutoscaler,
} from "./types.ts";

/** The built-in kinds by apiVersion and kind. */
export interface BuiltInKinds {
  "v1/Event": CoreV1Event;
  "events.k8s.io/v1/Event": EventsV1Event;
  "apiregistration.k8s.io/v1/APIService": V1APIService;
  "v1/Binding": V1Binding;
  "storage.k8s.io/v1/CSIDriver": V1CSIDriver;
  "storage.k8s.io/v1/CSINode": V1CSINode;
  "storage.k8s.io/v1/CSIStorageCapacity": V1CSIStorageCapacity;
  "certificates.k8s.io/v1/CertificateSigningRequest": V1CertificateSigningRequest;
  "rbac.authorization.k8s.io/v1/ClusterRole": V1ClusterRole;
  "rbac.authorization.k8s.io/v1/ClusterRoleBinding": V1ClusterRoleBinding;
  "v1/ConfigMap": V1ConfigMap;
  "apps/v1/ControllerRevision": V1ControllerRevision;
  "batch/v1/CronJob": V1CronJob;
  "apiextensions.k8s.io/v1/CustomResourceDefinition": V1CustomResourceDefinition;
  "apps/v1/DaemonSet": V1DaemonSet;
  "apps/v1/Deployment": V1Deployment;
  "discovery.k8s.io/v1/EndpointSlice": V1EndpointSlice;
  "v1/Endpoints": V1Endpoints;
  "flowcontrol.apiserver.k8s.io/v1/FlowSchema": V1FlowSchema;
  "autoscaling/v1/HorizontalPodAutoscaler": V1HorizontalPodAutoscaler;
  "networking.k8s.io/v1/Ingress": V1Ingress;
  "networking.k8s.io/v1/IngressClass": V1IngressClass;
  "batch/v1/Job": V1Job;
  "coordination.k8s.io/v1/Lease": V1Lease;
  "v1/LimitRange": V1LimitRange;
  "authorization.k8s.io/v1/LocalSubjectAccessReview": V1LocalSubjectAccessReview;
  "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": V1MutatingWebhookConfiguration;
  "v1/Namespace": V1Namespace;
  "networking.k8s.io/v1/NetworkPolicy": V1NetworkPolicy;
  "v1/Node": V1Node;
  "v1/PersistentVolume": V1PersistentVolume;
  "v1/PersistentVolumeClaim": V1PersistentVolumeClaim;
  "v1/Pod": V1Pod;
  "policy/v1/PodDisruptionBudget": V1PodDisruptionBudget;
  "v1/PodTemplate": V1PodTemplate;
  "scheduling.k8s.io/v1/PriorityClass": V1PriorityClass;
  "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": V1PriorityLevelConfiguration;
  "apps/v1/ReplicaSet": V1ReplicaSet;
  "v1/ReplicationController": V1ReplicationController;
  "v1/ResourceQuota": V1ResourceQuota;
  "rbac.authorization.k8s.io/v1/Role": V1Role;
  "rbac.authorization.k8s.io/v1/RoleBinding": V1RoleBinding;
  "node.k8s.io/v1/RuntimeClass": V1RuntimeClass;
  "v1/Secret": V1Secret;
  "authorization.k8s.io/v1/SelfSubjectAccessReview": V1SelfSubjectAccessReview;
  "authentication.k8s.io/v1/SelfSubjectReview": V1SelfSubjectReview;
  "authorization.k8s.io/v1/SelfSubjectRulesReview": V1SelfSubjectRulesReview;
  "v1/Service": V1Service;
  "v1/ServiceAccount": V1ServiceAccount;
  "apps/v1/StatefulSet": V1StatefulSet;
  "storage.k8s.io/v1/StorageClass": V1StorageClass;
  "authorization.k8s.io/v1/SubjectAccessReview": V1SubjectAccessReview;
  "authentication.k8s.io/v1/TokenReview": V1TokenReview;
  "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": V1ValidatingWebhookConfiguration;
  "storage.k8s.io/v1/VolumeAttachment": V1VolumeAttachment;
  "autoscaling/v2/HorizontalPodAutoscaler": V2HorizontalPodAutoscaler;
}
