import type { KubeObject } from "../api/object.ts";
import type { PolicyRule } from "../auth/rbac.ts";

const group = "rbac.authorization.k8s.io";
const metadata = (name: string) => ({
  name,
  labels: { "kubernetes.io/bootstrapping": "rbac-defaults" },
  annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" },
});

const role = (name: string, rules: PolicyRule[]): KubeObject => ({
  apiVersion: `${group}/v1`,
  kind: "ClusterRole",
  metadata: metadata(name),
  rules,
});

const binding = (name: string, groups: string[]): KubeObject => ({
  apiVersion: `${group}/v1`,
  kind: "ClusterRoleBinding",
  metadata: metadata(name),
  roleRef: { apiGroup: group, kind: "ClusterRole", name },
  subjects: groups.map((one) => ({ apiGroup: group, kind: "Group", name: one })),
});

const read = ["get", "list", "watch"];
const write = ["create", "delete", "deletecollection", "patch", "update"];
const rule = (apiGroups: string[], resources: string[], verbs: string[]): PolicyRule => ({
  apiGroups,
  resources,
  verbs,
});

/** The resources that the default `view`, `edit` and `admin` roles grant, by group. */
const workloads: [string, string[]][] = [
  [
    "",
    [
      "configmaps",
      "endpoints",
      "persistentvolumeclaims",
      "pods",
      "replicationcontrollers",
      "replicationcontrollers/scale",
      "serviceaccounts",
      "services",
    ],
  ],
  [
    "apps",
    [
      "daemonsets",
      "deployments",
      "deployments/scale",
      "replicasets",
      "replicasets/scale",
      "statefulsets",
      "statefulsets/scale",
    ],
  ],
  ["autoscaling", ["horizontalpodautoscalers"]],
  ["batch", ["cronjobs", "jobs"]],
  ["networking.k8s.io", ["ingresses", "networkpolicies"]],
  ["policy", ["poddisruptionbudgets"]],
];
const seen: [string, string[]][] = [
  ["", ["events", "limitranges", "namespaces", "resourcequotas", "pods/status", "pods/log", "services/status"]],
  ["discovery.k8s.io", ["endpointslices"]],
];

const view = [...workloads, ...seen].map(([one, resources]) => rule([one], resources, read));
const edit = [
  ...view,
  rule([""], ["secrets"], [...read, ...write]),
  rule([""], ["serviceaccounts"], ["impersonate"]),
  rule([""], ["serviceaccounts/token"], ["create"]),
  rule(["", "events.k8s.io"], ["events"], ["create", "patch", "update"]),
  rule(["coordination.k8s.io"], ["leases"], [...read, ...write]),
  ...workloads.map(([one, resources]) => rule([one], resources, write)),
];

/** The default ClusterRoles: those that people bind, and those that every user has. */
export const roles: KubeObject[] = [
  role("cluster-admin", [rule(["*"], ["*"], ["*"]), { nonResourceURLs: ["*"], verbs: ["*"] }]),
  role("admin", [
    ...edit,
    rule([group], ["rolebindings", "roles"], [...read, ...write]),
    rule(["authorization.k8s.io"], ["localsubjectaccessreviews"], ["create"]),
  ]),
  role("edit", edit),
  role("view", view),
  role("system:basic-user", [
    rule(["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]),
    rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
  ]),
  role("system:discovery", [
    {
      nonResourceURLs: [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
      ],
      verbs: ["get"],
    },
  ]),
  role("system:public-info-viewer", [
    { nonResourceURLs: ["/healthz", "/livez", "/readyz", "/version", "/version/"], verbs: ["get"] },
  ]),
];

/** Default bindings: the administrators, and the roles that every user has. */
export const bindings: KubeObject[] = [
  binding("cluster-admin", ["system:masters"]),
  binding("system:basic-user", ["system:authenticated"]),
  binding("system:discovery", ["system:authenticated"]),
  binding("system:public-info-viewer", ["system:authenticated", "system:unauthenticated"]),
];
