/** The templates' names and descriptions. */
export const templates = {
  hello: "logs each ConfigMap of a namespace",
  controller: "reconciles a custom resource, with its CRD, types and status",
  sync: "copies a labelled ConfigMap into another namespace",
  notifier: "posts Warning events to a webhook",
  "secret-mirror": "keeps copies of a Secret in the namespaces that ask for one",
  "configmap-sync": "copies a ConfigMap into the namespaces that its selector chooses",
  "namespace-defaults": "gives each new Namespace a NetworkPolicy, a ResourceQuota and a LimitRange",
  "restart-on-config": "restarts Deployments when a ConfigMap that they use changes",
  "crash-notify": "posts Pods that fall into a crash loop to a webhook",
  "object-ttl": "deletes objects when the time in their annotation has passed",
  "owner-labels": "labels each Pod with the workload that it belongs to",
  "image-report": "reports images of registries that are not allowed, in a ConfigMap",
  "quota-watch": "warns when a namespace has used 90 % of its quota",
  "nightly-cleanup": "deletes finished Pods at night",
  "service-webhook": "posts load-balanced Services to a webhook, such as one that writes DNS",
} as const;

export type Template = keyof typeof templates;

export const isTemplate = (name: string): name is Template => Object.hasOwn(templates, name);
