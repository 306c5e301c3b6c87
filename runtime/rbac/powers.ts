/**
 * A grant that reaches further than its text says: with it an account gains rights, data or control that no rule names. The table
 * is based on these lists, which their owners maintain:
 * - Kubernetes, "RBAC good practices", its section on the risks of privilege escalation:
 *   https://kubernetes.io/docs/concepts/security/rbac-good-practices/
 * - the rules of Trivy: https://github.com/aquasecurity/trivy-checks (`KSV-…`)
 * - the controls of Kubescape: https://github.com/kubescape/regolibrary (`C-…`)
 * - the policies of rbac-police: https://github.com/PaloAltoNetworks/rbac-police (names of files in `lib/`)
 *
 * To update the table, compare it with them. Powers over this runtime have a page of our documentation as their source.
 */
export interface Power {
  readonly group: string;
  readonly resources: readonly string[];
  /** Verbs of RBAC, including those that a manifest cannot name, such as `impersonate`: a rule for `*` includes them. */
  readonly verbs: readonly string[];
  /** Completes the sentence "create of pods reaches …". */
  readonly reached: string;
  /**
   * Scope of grants that are warned about. `Runtime`: in the runtime's namespace. `System`: in kube-system. `Anywhere`: in any
   * namespace. `Cluster`: cluster-scoped objects. A grant for all namespaces is warned about in each case.
   */
  readonly where: "Runtime" | "System" | "Anywhere" | "Cluster";
  /**
   * `resourceNames` that leave the power intact. `any`: all names. Default: the runtime's own names for powers over the runtime,
   * and names in a rule for kube-system.
   */
  readonly names?: "any" | RegExp;
  /** True if the power concerns only objects with these names: a rule without `resourceNames` is covered by another entry. */
  readonly isByName?: true;
  /** Entry in one of the lists above, or a page. */
  readonly source: string;
}

const reserved = "reserved.md";
const practices = (section: string) => `https://kubernetes.io/docs/concepts/security/rbac-good-practices/#${section}`;
const kubernetes = (page: string) => `https://kubernetes.io/docs/${page}`;
const trivy = (id: string) => `Trivy ${id}`;
const kubescape = (id: string) => `Kubescape ${id}`;
const police = (policy: string) => `rbac-police ${policy}`;

const makes = ["create", "update", "patch"];
const writes = [...makes, "delete"];
/** The kubelet and the API server accept a WebSocket with `get`, and other clients with `create`. */
const opens = ["get", ...makes];

const rbac = "rbac.authorization.k8s.io";
const admission = "admissionregistration.k8s.io";

/** Powers over one runtime: over its objects, and thereby over its functions. */
const overTheRuntime: readonly Omit<Power, "where" | "source">[] = [
  { group: "", resources: ["configmaps"], verbs: writes, reached: "the deployed code and its index" },
  {
    group: "",
    resources: ["secrets"],
    verbs: ["get", "list"],
    reached: "the runtime's checkpoints, and other functions' env",
  },
  {
    group: "",
    resources: ["secrets"],
    verbs: writes,
    reached: "the runtime's checkpoints, and the token of any account",
  },
  { group: "", resources: ["serviceaccounts"], verbs: writes, reached: "the functions' accounts" },
  { group: "", resources: ["pods"], verbs: writes, reached: "the runtime's pod, and a pod under any account" },
  {
    group: "",
    resources: ["pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "pods/ephemeralcontainers"],
    verbs: opens,
    reached: "the inside of the runtime's pod",
  },
  { group: "", resources: ["pods/eviction"], verbs: ["create"], reached: "the runtime's pod" },
  { group: "", resources: ["replicationcontrollers"], verbs: makes, reached: "a pod under any account" },
  { group: "", resources: ["persistentvolumeclaims"], verbs: ["delete"], reached: "the runtime's volume" },
  {
    group: "apps",
    resources: ["deployments", "statefulsets", "daemonsets", "replicasets"],
    verbs: writes,
    reached: "the runtime's workload, and a pod under any account",
  },
  { group: "apps", resources: ["statefulsets/scale"], verbs: ["update", "patch"], reached: "the runtime's replicas" },
  { group: "batch", resources: ["jobs", "cronjobs"], verbs: makes, reached: "a pod under any account" },
  { group: "coordination.k8s.io", resources: ["leases"], verbs: writes, reached: "the runtime's Lease" },
  {
    group: rbac,
    resources: ["roles", "rolebindings"],
    verbs: writes,
    reached: "the rights of the functions' accounts",
  },
  {
    group: "watchfire.dev",
    resources: ["functions", "functions/status", "functionsets", "functionsets/status"],
    verbs: writes,
    reached: "the functions' objects, and which sets are paused",
  },
  { group: "", resources: ["namespaces"], verbs: ["delete"], reached: "the runtime's namespace" },
];

/** Powers over the cluster, or over other workloads in it. */
const overTheCluster: readonly Power[] = [
  {
    group: "",
    resources: ["secrets"],
    verbs: ["get", "list"],
    reached: "the credentials in the namespace, including tokens of its accounts",
    where: "System",
    source: practices("listing-secrets"),
  },
  {
    group: "",
    resources: ["secrets"],
    verbs: makes,
    reached:
      "a token of any account of the namespace, because the control plane writes one into a Secret that asks for it",
    where: "System",
    source: police("issue_token_secrets"),
  },
  {
    group: "",
    resources: ["secrets"],
    verbs: ["get", "list", ...writes],
    reached: "what Helm installed and with which values, and what its next upgrade or rollback installs",
    where: "Anywhere",
    names: /^sh\.helm\.release\.v1\./,
    isByName: true,
    source: "https://helm.sh/docs/topics/advanced/#storage-backends",
  },
  {
    group: "",
    resources: ["configmaps"],
    verbs: writes,
    reached: "the cluster's DNS and network proxy, and on some platforms who may log in",
    where: "System",
    names: /^(?:coredns|kube-proxy|kubeadm-config|aws-auth|extension-apiserver-authentication)$/,
    source: `${kubescape("C-0037")}, ${police("eks_modify_aws_auth")}`,
  },
  ...(
    [
      ["", ["pods", "replicationcontrollers"]],
      ["apps", ["deployments", "statefulsets", "daemonsets", "replicasets"]],
      ["batch", ["jobs", "cronjobs"]],
    ] as const
  ).map(
    ([group, resources]): Power => ({
      group,
      resources,
      verbs: makes,
      reached:
        "the Secrets, volumes and accounts of the namespace, which a pod may take, and by a privileged pod the node",
      where: "System",
      source: practices("workload-creation"),
    }),
  ),
  {
    group: "",
    resources: ["pods/exec", "pods/attach", "pods/ephemeralcontainers"],
    verbs: opens,
    reached: "the inside of every running container, with the token of its account",
    where: "System",
    source: `${kubescape("C-0002")}, ${police("pods_exec")}, ${police("pods_ephemeral_ctrs")}`,
  },
  {
    group: "",
    resources: ["pods/portforward", "pods/proxy", "services/proxy"],
    verbs: opens,
    reached: "ports that no NetworkPolicy opens to the function, with the API server as the caller",
    where: "System",
    source: kubescape("C-0063"),
  },
  {
    group: "",
    resources: ["pods"],
    verbs: ["delete"],
    reached: "pods of the control plane and of the nodes, which it can stop",
    where: "System",
    source: police("steal_pods"),
  },
  {
    group: "",
    resources: ["pods/eviction"],
    verbs: ["create"],
    reached: "pods of the control plane and of the nodes, which it can stop",
    where: "System",
    source: police("steal_pods"),
  },
  {
    group: "apps",
    resources: ["deployments", "statefulsets", "daemonsets", "replicasets"],
    verbs: ["delete"],
    reached: "the workloads of the cluster's DNS, network and storage",
    where: "System",
    source: trivy("KSV-0048"),
  },
  {
    group: "",
    resources: ["serviceaccounts"],
    verbs: makes,
    reached: "the cloud identity that the account's pods get by its annotations",
    where: "System",
    source: police("providerIAM"),
  },
  {
    group: "",
    resources: ["serviceaccounts/token"],
    verbs: ["create"],
    reached: "the token of any account of the namespace, with all that the account may do elsewhere",
    where: "Anywhere",
    names: "any",
    source: practices("token-request"),
  },
  {
    group: "",
    resources: ["serviceaccounts"],
    verbs: ["impersonate"],
    reached: "all that the accounts of the namespace may do",
    where: "Anywhere",
    names: "any",
    source: practices("impersonate-verb"),
  },
  {
    group: "",
    resources: ["users", "groups"],
    verbs: ["impersonate"],
    reached: "all that any user may do, including the group system:masters",
    where: "Cluster",
    names: "any",
    source: practices("impersonate-verb"),
  },
  {
    group: "authentication.k8s.io",
    resources: ["uids", "userextras"],
    verbs: ["impersonate"],
    reached: "the attributes by which authorizers and webhooks know users",
    where: "Cluster",
    names: "any",
    source: kubernetes("reference/access-authn-authz/authentication/#user-impersonation"),
  },
  {
    group: rbac,
    resources: ["roles"],
    verbs: ["escalate", "bind"],
    reached: "every right in the namespace, because it bypasses the check that no account grants more than it has",
    where: "Anywhere",
    names: "any",
    source: `${practices("escalate-verb")}, ${trivy("KSV-0050")}`,
  },
  {
    group: rbac,
    resources: ["clusterroles"],
    verbs: ["escalate", "bind"],
    reached: "every right in the cluster, because it bypasses the check that no account grants more than it has",
    where: "Cluster",
    names: "any",
    source: `${practices("bind-verb")}, ${trivy("KSV-0050")}`,
  },
  {
    group: rbac,
    resources: ["roles", "rolebindings"],
    verbs: writes,
    reached: "who may do what in the namespace of the control plane",
    where: "System",
    source: trivy("KSV-0050"),
  },
  {
    group: rbac,
    resources: ["clusterroles", "clusterrolebindings"],
    verbs: writes,
    reached: "the rights of every account",
    where: "Cluster",
    source: trivy("KSV-0050"),
  },
  {
    group: "certificates.k8s.io",
    resources: ["certificatesigningrequests"],
    verbs: ["create"],
    reached: "a client certificate under any name, if a signer or an approver issues it",
    where: "Cluster",
    source: practices("csrs-and-certificate-issuing"),
  },
  {
    group: "certificates.k8s.io",
    resources: ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
    verbs: ["update", "patch"],
    reached: "client certificates under any name, including those of system components",
    where: "Cluster",
    names: "any",
    source: `${practices("csrs-and-certificate-issuing")}, ${police("approve_csrs")}`,
  },
  {
    group: "certificates.k8s.io",
    resources: ["signers"],
    verbs: ["approve", "sign", "attest"],
    reached: "certificates of that signer, and with kubernetes.io/kube-apiserver-client any user's rights",
    where: "Cluster",
    names: "any",
    source: kubernetes("reference/access-authn-authz/certificate-signing-requests/#authorization"),
  },
  {
    group: "",
    resources: ["nodes/proxy"],
    verbs: opens,
    reached: "commands in every pod of a node by its kubelet, which neither admission nor the audit log sees",
    where: "Cluster",
    names: "any",
    source: `${practices("access-to-proxy-subresource-of-nodes")}, ${trivy("KSV-0047")}`,
  },
  {
    group: "",
    resources: ["nodes", "nodes/status"],
    verbs: writes,
    reached: "where pods run: they can be moved to a node that an attacker controls",
    where: "Cluster",
    source: `${police("steal_pods")}, ${police("modify_node_status")}`,
  },
  {
    group: "",
    resources: ["persistentvolumes"],
    verbs: makes,
    reached: "the files of any node, by a volume of type hostPath",
    where: "Cluster",
    source: practices("persistent-volume-creation"),
  },
  {
    group: "",
    resources: ["namespaces"],
    verbs: ["update", "patch"],
    reached: "the labels by which Pod Security admission and NetworkPolicies treat a namespace",
    where: "System",
    names: /^kube-system$/,
    source: practices("namespace-modification"),
  },
  {
    group: "",
    resources: ["namespaces"],
    verbs: ["delete"],
    reached: "everything in a namespace, which is deleted with it",
    where: "System",
    names: /^kube-system$/,
    source: kubernetes("concepts/overview/working-with-objects/namespaces/"),
  },
  {
    group: admission,
    resources: ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    verbs: makes,
    reached:
      "each object that anybody writes, including Secrets: a webhook receives them, and may change or refuse them",
    where: "Cluster",
    names: "any",
    source: `${practices("control-admission-webhooks")}, ${kubescape("C-0036")}, ${kubescape("C-0039")}`,
  },
  {
    group: admission,
    resources: [
      "mutatingadmissionpolicies",
      "mutatingadmissionpolicybindings",
      "validatingadmissionpolicies",
      "validatingadmissionpolicybindings",
    ],
    verbs: makes,
    reached: "each object that anybody writes, including Secrets: a policy may change or refuse them",
    where: "Cluster",
    names: "any",
    source: kubernetes("reference/access-authn-authz/mutating-admission-policy/"),
  },
  {
    group: admission,
    resources: [
      "mutatingwebhookconfigurations",
      "validatingwebhookconfigurations",
      "mutatingadmissionpolicies",
      "mutatingadmissionpolicybindings",
      "validatingadmissionpolicies",
      "validatingadmissionpolicybindings",
    ],
    verbs: ["delete"],
    reached: "the checks that restrict others, which it can remove",
    where: "Cluster",
    names: "any",
    source: police("control_webhooks"),
  },
  {
    group: "apiregistration.k8s.io",
    resources: ["apiservices"],
    verbs: writes,
    reached: "every request for an API group, which it can route to another server",
    where: "Cluster",
    names: "any",
    source: `${kubescape("C-0089")}, ${kubernetes("concepts/extend-kubernetes/api-extension/apiserver-aggregation/")}`,
  },
  {
    group: "apiextensions.k8s.io",
    resources: ["customresourcedefinitions"],
    verbs: writes,
    reached:
      "every object of a custom kind, including Function: a conversion webhook receives them, and a deleted definition deletes them",
    where: "Cluster",
    names: /\.watchfire\.dev$/,
    source: kubernetes("tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/"),
  },
  {
    group: "networking.k8s.io",
    resources: ["networkpolicies"],
    verbs: writes,
    reached: "which pods may talk to which",
    where: "System",
    source: trivy("KSV-0056"),
  },
  {
    group: "",
    resources: ["services", "services/status", "endpoints"],
    verbs: writes,
    reached: "where traffic for a service goes",
    where: "System",
    source: `${trivy("KSV-0056")}, ${police("modify_service_status_cve_2020_8554")}`,
  },
  {
    group: "discovery.k8s.io",
    resources: ["endpointslices"],
    verbs: writes,
    reached: "where traffic for a service goes",
    where: "System",
    source: trivy("KSV-0056"),
  },
  {
    group: "networking.k8s.io",
    resources: ["ingresses"],
    verbs: writes,
    reached: "where traffic from outside goes",
    where: "System",
    source: trivy("KSV-0056"),
  },
  {
    group: "coordination.k8s.io",
    resources: ["leases"],
    verbs: writes,
    reached: "which replica of the scheduler and of the controller manager works, if any",
    where: "System",
    source: kubernetes("concepts/architecture/leases/"),
  },
];

/** All powers. Those over the runtime come first, because most excessive rules concern its namespace. */
export const powers: readonly Power[] = [
  ...overTheRuntime.map((power): Power => ({ ...power, where: "Runtime", source: reserved })),
  ...overTheCluster,
];
