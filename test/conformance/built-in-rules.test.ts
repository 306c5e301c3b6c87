// The objects of built-in kinds that the server refuses, and the form in which it stores others: each a dry run.
import { beforeAll, describe, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { admin, createNamespace } from "../target/fixture.ts";

let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace();
});

/** The group version and plural of each kind below. */
const kinds: Readonly<Record<string, readonly [apiVersion: string, plural: string]>> = {
  ConfigMap: ["v1", "configmaps"],
  Secret: ["v1", "secrets"],
  Service: ["v1", "services"],
  Pod: ["v1", "pods"],
  Endpoints: ["v1", "endpoints"],
  LimitRange: ["v1", "limitranges"],
  ResourceQuota: ["v1", "resourcequotas"],
  ReplicationController: ["v1", "replicationcontrollers"],
  PersistentVolumeClaim: ["v1", "persistentvolumeclaims"],
  Deployment: ["apps/v1", "deployments"],
  StatefulSet: ["apps/v1", "statefulsets"],
  DaemonSet: ["apps/v1", "daemonsets"],
  Job: ["batch/v1", "jobs"],
  CronJob: ["batch/v1", "cronjobs"],
  Ingress: ["networking.k8s.io/v1", "ingresses"],
  NetworkPolicy: ["networking.k8s.io/v1", "networkpolicies"],
  PodDisruptionBudget: ["policy/v1", "poddisruptionbudgets"],
  HorizontalPodAutoscaler: ["autoscaling/v2", "horizontalpodautoscalers"],
  Role: ["rbac.authorization.k8s.io/v1", "roles"],
  RoleBinding: ["rbac.authorization.k8s.io/v1", "rolebindings"],
};

/** Creates an object by a dry run; gives its status and body. */
function tried(kind: string, object: object): Promise<{ status: number; body: Body }> {
  const [apiVersion, plural] = kinds[kind] ?? ["", ""];
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  const body = { apiVersion, kind, metadata: { name: "a" }, ...object };
  return admin.reply("POST", `${root}/namespaces/${namespace}/${plural}`, { query: { dryRun: "All" }, body });
}

const container = { name: "c", image: "i" };
const labels = { app: "a" };
const template = (spec: object) => ({ metadata: { labels }, spec });
const workload = (spec: object, more: object = {}) => ({
  spec: { selector: { matchLabels: labels }, template: template(spec), ...more },
});
const job = (more: object) => ({
  spec: { template: { spec: { restartPolicy: "Never", containers: [container] } }, ...more },
});
const cronJob = (schedule: string, more: object = {}) => ({ spec: { schedule, jobTemplate: job({}), ...more } });
const path = (more: object) => ({
  spec: {
    rules: [{ http: { paths: [{ backend: { service: { name: "s", port: { number: 80 } } }, ...more }] } }],
  },
});
const target = { kind: "Deployment", name: "d", apiVersion: "apps/v1" };
const claim = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const from = (peer: object) => ({ spec: { podSelector: {}, ingress: [{ from: [peer] }] } });

/** Faults of a container, found in a pod and in every template of pods. */
const containerFaults: readonly (readonly [container: object, fault: string])[] = [
  [{ image: undefined }, "image: Required value"],
  [{ name: "Bad_Name" }, "name: Invalid value"],
  [{ imagePullPolicy: "Sometimes" }, "imagePullPolicy: Unsupported value"],
  [{ ports: [{ containerPort: 99_999 }] }, "ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535"],
  [{ ports: [{ name: "http" }] }, "ports[0].containerPort: Required value"],
  [{ ports: [{ containerPort: 80, protocol: "http" }] }, "ports[0].protocol: Unsupported value"],
  [{ volumeMounts: [{ name: "nope", mountPath: "/x" }] }, 'volumeMounts[0].name: Not found: "nope"'],
  [
    { resources: { limits: { cpu: "1" }, requests: { cpu: "2" } } },
    'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
  ],
  [{ resources: { limits: { foo: "1" } } }, 'resources.limits[foo]: Invalid value: "foo": must be a standard resource'],
  [{ resources: { requests: { cpu: "-1" } } }, 'resources.requests[cpu]: Invalid value: "-1": must be greater than'],
  [{ livenessProbe: {} }, "livenessProbe: Required value: must specify a handler type"],
  [
    { livenessProbe: { exec: { command: ["a"] }, successThreshold: 2 } },
    "livenessProbe.successThreshold: Invalid value: 2: must be 1",
  ],
  [{ env: [{ value: "x" }] }, "env[0].name: Required value"],
  [
    { env: [{ name: "x", value: "x", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }] },
    'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
  ],
];

const refused: readonly (readonly [kind: string, object: object, fault: string])[] = [
  ...containerFaults.flatMap(([more, fault]) => {
    const spec = { containers: [{ ...container, ...more }] };
    return [
      ["Pod", { spec }, `spec.containers[0].${fault}`],
      ["Deployment", workload(spec), `spec.template.spec.containers[0].${fault}`],
      ["StatefulSet", workload(spec), `spec.template.spec.containers[0].${fault}`],
    ] as const;
  }),
  ["Pod", { spec: { containers: [container, container] } }, "spec.containers[1].name: Duplicate value"],
  ["Pod", { spec: { dnsPolicy: "Foo", containers: [container] } }, "spec.dnsPolicy: Unsupported value"],
  [
    "Pod",
    { spec: { volumes: [{ name: "A_", emptyDir: {} }], containers: [container] } },
    "spec.volumes[0].name: Invalid value",
  ],
  [
    "Deployment",
    workload({ restartPolicy: "Never", containers: [container] }),
    'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
  ],
  [
    "Deployment",
    workload({ containers: [container] }, { strategy: { type: "Recreate", rollingUpdate: { maxSurge: 1 } } }),
    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
  ],
  [
    "Deployment",
    workload({ containers: [container] }, { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } }),
    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
  ],
  [
    "Deployment",
    workload({ containers: [container] }, { progressDeadlineSeconds: 1, minReadySeconds: 5 }),
    "spec.progressDeadlineSeconds: Invalid value: 1: must be greater than minReadySeconds",
  ],
  [
    "Deployment",
    workload({ containers: [container] }, { revisionHistoryLimit: -1 }),
    "spec.revisionHistoryLimit: Invalid value: -1",
  ],
  [
    "Deployment",
    workload({ containers: [container] }, { selector: { matchExpressions: [{ key: "app", operator: "Foo" }] } }),
    'spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator',
  ],
  [
    "Deployment",
    workload({ containers: [container] }, { selector: { matchExpressions: [{ key: "app", operator: "In" }] } }),
    "spec.selector.matchExpressions[0].values: Required value",
  ],
  [
    "Deployment",
    workload({ containers: [container] }, { selector: { matchLabels: { app: "a b" } } }),
    'spec.selector.matchLabels: Invalid value: "a b"',
  ],
  ["Job", job({ backoffLimit: -1 }), "spec.backoffLimit: Invalid value: -1"],
  ["Job", job({ selector: { matchLabels: labels } }), "spec.selector: Invalid value"],
  ["CronJob", cronJob("nope"), 'spec.schedule: Invalid value: "nope": expected exactly 5 fields, found 1: [nope]'],
  ["CronJob", cronJob("60 * * * *"), 'spec.schedule: Invalid value: "60 * * * *": end of range (60) above maximum'],
  ["CronJob", cronJob("a * * * *"), 'spec.schedule: Invalid value: "a * * * *": failed to parse int from a'],
  ["CronJob", cronJob("5-1 * * * *"), 'spec.schedule: Invalid value: "5-1 * * * *": beginning of range (5) beyond end'],
  ["CronJob", cronJob("@foo"), 'spec.schedule: Invalid value: "@foo": unrecognized descriptor: @foo'],
  ["CronJob", cronJob("TZ=UTC * * * * *"), 'spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ'],
  ["CronJob", cronJob("* * * * *", { timeZone: "Mars/Base" }), 'spec.timeZone: Invalid value: "Mars/Base"'],
  ["CronJob", { ...cronJob("* * * * *"), metadata: { name: "a".repeat(53) } }, "metadata.name: Invalid value"],
  ["Service", { spec: { ports: [{ port: 80 }, { port: 81 }] } }, "spec.ports[0].name: Required value"],
  ["Service", { spec: { ports: [{ port: 99_999 }] } }, "spec.ports[0].port: Invalid value: 99999"],
  ["Service", { spec: { ports: [{ port: 80, targetPort: "A_" }] } }, 'spec.ports[0].targetPort: Invalid value: "A_"'],
  ["Service", { spec: { type: "ExternalName" } }, "spec.externalName: Required value"],
  ["Service", { spec: { ports: [{ port: 80 }], selector: { "a b": "c" } } }, 'spec.selector: Invalid value: "a b"'],
  ["Service", { spec: { ports: [{ port: 80 }], clusterIP: "1.2.3" } }, 'spec.clusterIPs[0]: Invalid value: "1.2.3"'],
  [
    "Service",
    { spec: { ports: [80, 80].map((port, index) => ({ port, name: `p${index}` })) } },
    "spec.ports[1]: Duplicate value",
  ],
  ["Ingress", path({ path: "/" }), "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
  ["Ingress", path({ path: "x", pathType: "Prefix" }), "spec.rules[0].http.paths[0].path: Invalid value"],
  ["Ingress", path({ path: "/a//b", pathType: "Prefix" }), "spec.rules[0].http.paths[0].path: Invalid value"],
  ["Ingress", path({ path: "/", pathType: "prefix" }), "spec.rules[0].http.paths[0].pathType: Unsupported value"],
  [
    "Ingress",
    path({ path: "/", pathType: "Exact", backend: {} }),
    "spec.rules[0].http.paths[0].backend: Invalid value",
  ],
  ["Ingress", { spec: {} }, "spec: Invalid value"],
  ["Ingress", { spec: { rules: [{ host: "A_b" }] } }, 'spec.rules[0].host: Invalid value: "A_b"'],
  ["NetworkPolicy", from({ ipBlock: { cidr: "10.0.0.0" } }), "spec.ingress[0].from[0].ipBlock.cidr: Invalid value"],
  [
    "NetworkPolicy",
    from({ ipBlock: { cidr: "10.0.0.0/8", except: ["1.0.0.0/9"] } }),
    "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value",
  ],
  ["NetworkPolicy", from({}), "spec.ingress[0].from[0]: Required value: must specify a peer"],
  [
    "NetworkPolicy",
    { spec: { podSelector: { matchLabels: { "a b": "c" } } } },
    "spec.podSelector.matchLabels: Invalid",
  ],
  ["PodDisruptionBudget", { spec: { minAvailable: 1, maxUnavailable: 1 } }, "spec: Invalid value"],
  ["PodDisruptionBudget", { spec: { minAvailable: "150%" } }, 'spec.minAvailable: Invalid value: "150%"'],
  ["PodDisruptionBudget", { spec: { maxUnavailable: "x" } }, 'spec.maxUnavailable: Invalid value: "x"'],
  [
    "HorizontalPodAutoscaler",
    { spec: { minReplicas: 3, maxReplicas: 2, scaleTargetRef: target } },
    "spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`",
  ],
  [
    "HorizontalPodAutoscaler",
    { spec: { minReplicas: 0, maxReplicas: 2, scaleTargetRef: target } },
    "spec.minReplicas: Invalid value: 0",
  ],
  ["PersistentVolumeClaim", { spec: { ...claim, resources: {} } }, "spec.resources[storage]: Required value"],
  ["PersistentVolumeClaim", { spec: { ...claim, accessModes: [] } }, "spec.accessModes: Required value"],
  ["ResourceQuota", { spec: { hard: { pod: "1" } } }, 'spec.hard[pod]: Invalid value: "pod": must be a standard'],
  ["ResourceQuota", { spec: { hard: { pods: "-1" } } }, 'spec.hard[pods]: Invalid value: "-1"'],
  ["LimitRange", { spec: { limits: [{ type: "Foo" }] } }, 'spec.limits[0].type: Invalid value: "Foo"'],
  [
    "LimitRange",
    { spec: { limits: [{ type: "Container", min: { cpu: "2" }, max: { cpu: "1" } }] } },
    'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
  ],
  ["Secret", { type: "kubernetes.io/tls", data: { "tls.crt": "YQ==" } }, "data[tls.key]: Required value"],
  ["Secret", { type: "kubernetes.io/basic-auth", data: { x: "YQ==" } }, "data[username]: Required value"],
  ["Secret", { type: "kubernetes.io/ssh-auth" }, "data[ssh-privatekey]: Required value"],
  ["Secret", { type: "kubernetes.io/dockerconfigjson", data: {} }, "data[.dockerconfigjson]: Required value"],
  ["Role", { rules: [{ nonResourceURLs: ["/x"], verbs: ["get"] }] }, "rules[0].nonResourceURLs: Invalid value"],
  [
    "RoleBinding",
    { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Foo", name: "a" } },
    'roleRef.kind: Unsupported value: "Foo": supported values: "Role", "ClusterRole"',
  ],
  ["ConfigMap", { metadata: { name: "a", finalizers: ["nope"] } }, 'metadata.finalizers[0]: Invalid value: "nope"'],
  [
    "ConfigMap",
    { metadata: { name: "a", annotations: { a: "x".repeat(262_145) } } },
    "metadata.annotations: Too long: may not be more than 262144 bytes",
  ],
];

const rowName = (kind: string, object: object) => `${kind} ${JSON.stringify(object).slice(0, 200)}`;

describe("an object of a built-in kind is refused", () => {
  test.each(refused.map((row) => [rowName(row[0], row[1]), ...row] as const))("%s", async (_, kind, object, fault) => {
    const { status, body } = await tried(kind, object);
    const causes = (body.details?.causes ?? []).map((cause: Body) => `${cause.field}: ${cause.message}`);
    expect([status, causes]).toEqual([422, expect.arrayContaining([expect.stringContaining(fault)])]);
  });

  test("by a label of pod security that names no level", async () => {
    const namespaceOf = (label: string, value: string) => ({
      metadata: { name: "pod-security", labels: { [`pod-security.kubernetes.io/${label}`]: value } },
    });
    const options = { query: { dryRun: "All" } };
    const reply = (label: string, value: string) =>
      admin.reply("POST", "/api/v1/namespaces", { ...options, body: namespaceOf(label, value) });
    expect((await reply("enforce", "strict")).body.message).toContain(
      'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted',
    );
    expect((await reply("enforce-version", "1.2")).status).toBe(422);
    expect((await reply("warn", "baseline")).status).toBe(201);
    expect((await reply("unknown", "strict")).status).toBe(201);
  });
});

/** The answer to each contains these fields. */
const stored: readonly (readonly [kind: string, object: object, holds: object])[] = [
  ...[
    ["0.1", "100m"],
    ["1500m", "1500m"],
    ["1.5", "1500m"],
    ["1000m", "1"],
    ["1000", "1k"],
    ["0.5Gi", "512Mi"],
    ["1024Ki", "1Mi"],
    ["1.5Gi", "1536Mi"],
    ["0.1Gi", "107374182400m"],
    ["1Ki", "1Ki"],
    ["512", "512"],
    ["1000e0", "1e3"],
    ["12e6", "12e6"],
    ["0", "0"],
    ["100n", "1m"],
    ["1E", "1E"],
    ["9999999999999999999", "9999999999999999999"],
    [3, "3"],
    [0.3, "300m"],
  ].map(
    ([given, kept]) =>
      [
        "ResourceQuota",
        { spec: { hard: { "requests.memory": given } } },
        { spec: { hard: { "requests.memory": kept } } },
      ] as const,
  ),
  ["ConfigMap", { data: { b: null, a: "1" } }, { data: { a: "1", b: "" } }],
  ["Secret", { data: { a: "YWJj\nZGVm\r\n" } }, { data: { a: "YWJjZGVm" }, type: "Opaque" }],
  [
    "Pod",
    { spec: { containers: [{ ...container, resources: { limits: { cpu: "0.5" } } }] } },
    { spec: { containers: [{ resources: { limits: { cpu: "500m" }, requests: { cpu: "500m" } } }] } },
  ],
  [
    "Deployment",
    workload({ containers: [{ ...container, env: [], resources: { limits: { cpu: "0.5" } } }] }),
    { spec: { template: { spec: { containers: [{ resources: { limits: { cpu: "500m" } } }] } } } },
  ],
  ["Deployment", workload({ serviceAccountName: "", containers: [container] }), { spec: { replicas: 1 } }],
  [
    "ReplicationController",
    { spec: { template: template({ containers: [container] }) } },
    { metadata: { labels }, spec: { selector: labels } },
  ],
  [
    "StatefulSet",
    workload({ containers: [container] }, { volumeClaimTemplates: [{ metadata: { name: "d" }, spec: claim }] }),
    {
      spec: {
        volumeClaimTemplates: [{ apiVersion: "v1", kind: "PersistentVolumeClaim", spec: { volumeMode: "Filesystem" } }],
      },
    },
  ],
  [
    "Service",
    { spec: { type: "LoadBalancer", ports: [{ port: 80, targetPort: 0 }] } },
    { spec: { externalTrafficPolicy: "Cluster", allocateLoadBalancerNodePorts: true, ports: [{ targetPort: 80 }] } },
  ],
  [
    "Endpoints",
    { subsets: [{ addresses: [{ ip: "10.1.2.3" }], ports: [{ port: 80 }] }] },
    { subsets: [{ ports: [{ port: 80, protocol: "TCP" }] }] },
  ],
  ["CronJob", cronJob("0 0 * jan mon"), { spec: { schedule: "0 0 * jan mon" } }],
  ["CronJob", cronJob("*/5,7 1-5/2 ? * *"), { spec: { suspend: false } }],
  ["CronJob", cronJob("@hourly"), { spec: { concurrencyPolicy: "Allow" } }],
  [
    "HorizontalPodAutoscaler",
    { spec: { maxReplicas: 2, scaleTargetRef: target, behavior: { scaleDown: { stabilizationWindowSeconds: 5 } } } },
    {
      spec: {
        behavior: {
          scaleUp: { stabilizationWindowSeconds: 0, selectPolicy: "Max" },
          scaleDown: { selectPolicy: "Max", policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] },
        },
      },
    },
  ],
  ["ConfigMap", { metadata: { name: "a", finalizers: ["kubernetes", "example.com/x"] } }, {}],
  ["ConfigMap", { metadata: { name: "a", labels: { a: null } } }, { metadata: { labels: { a: "" } } }],
  ["PodDisruptionBudget", { metadata: { name: "Bad_Name" }, spec: { minAvailable: 1 } }, {}],
  [
    "LimitRange",
    { metadata: {}, spec: { limits: [] } },
    { metadata: { name: expect.any(String) }, spec: { limits: null } },
  ],
  ["ResourceQuota", { spec: { hard: { cpu: null } } }, { spec: { hard: { cpu: "0" } } }],
  ["Secret", { data: { a: [], b: [97, 98] } }, { data: { a: "", b: "YWI=" } }],
  [
    "Pod",
    { spec: { dnsPolicy: "", containers: [{ ...container, imagePullPolicy: "" }] } },
    { spec: { dnsPolicy: "ClusterFirst" } },
  ],
  [
    "Pod",
    { spec: { containers: [{ ...container, lifecycle: { preStop: { httpGet: { port: 80 } } } }] } },
    { spec: { containers: [{ lifecycle: { preStop: { httpGet: { path: "/", scheme: "HTTP" } } } }] } },
  ],
  ["Job", job({}), { spec: { manualSelector: false } }],
  [
    "DaemonSet",
    workload({ containers: [container] }),
    { metadata: { annotations: { "deprecated.daemonset.template.generation": "1" } } },
  ],
  [
    "StatefulSet",
    workload({ containers: [container] }, { volumeClaimTemplates: [{ metadata: { name: "d" }, spec: claim }] }),
    { spec: { volumeClaimTemplates: [{ status: { phase: "Pending" } }] } },
  ],
  [
    "Service",
    { spec: { ports: [{ port: 80 }], sessionAffinity: "ClientIP" } },
    { spec: { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } } },
  ],
];

describe("an object of a built-in kind is stored", () => {
  test.each(stored.map((row) => [rowName(row[0], row[1]), ...row] as const))("%s", async (_, kind, object, holds) => {
    const { status, body } = await tried(kind, object);
    expect([status, body.message]).toEqual([201, undefined]);
    expect(body).toMatchObject(holds);
  });

  const emptied: readonly (readonly [kind: string, object: object, path: string])[] = [
    ["ConfigMap", { metadata: { name: "a", labels: {} } }, "metadata.labels"],
    ["ConfigMap", { metadata: { name: "a", annotations: {} } }, "metadata.annotations"],
    ["ConfigMap", { data: {} }, "data"],
    ["Secret", { data: {}, stringData: {} }, "data"],
    ["Secret", { data: {}, stringData: { a: "b" } }, "stringData"],
    ["Deployment", workload({ containers: [{ ...container, env: [] }] }), "spec.template.spec.containers[0].env"],
    [
      "Deployment",
      workload({ serviceAccountName: "", containers: [container] }),
      "spec.template.spec.serviceAccountName",
    ],
    ["Deployment", workload({ nodeSelector: {}, containers: [container] }), "spec.template.spec.nodeSelector"],
    ["ReplicationController", { spec: { template: template({ containers: [container] }) } }, "spec.minReadySeconds"],
  ];
  test.each(emptied.map((row) => [rowName(row[0], row[1]), ...row] as const))(
    "%s, without what is empty",
    async (_, kind, object, path) => {
      const { status, body } = await tried(kind, object);
      expect(status).toBe(201);
      expect(body).not.toHaveProperty(path);
    },
  );

  test("a pod's requests come from its limits; those of a template do not", async () => {
    const limited = { containers: [{ ...container, resources: { limits: { cpu: "1" } } }] };
    const { body } = await tried("Deployment", workload(limited));
    expect(body.spec.template.spec.containers[0].resources).toEqual({ limits: { cpu: "1" } });
  });

  test("a DaemonSet counts the changes of its template", async () => {
    const of = `/apis/apps/v1/namespaces/${namespace}/daemonsets`;
    const metadata = { name: "counted" };
    await admin.post(of, {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata,
      ...workload({ containers: [container] }),
    });
    const annotation = async (spec: object) => {
      const options = { body: { spec }, type: "application/merge-patch+json" };
      const { body } = await admin.reply("PATCH", `${of}/counted`, options);
      return body.metadata.annotations?.["deprecated.daemonset.template.generation"];
    };
    expect(await annotation({ minReadySeconds: 5 })).toBe("1");
    expect(await annotation({ template: { spec: { containers: [{ ...container, image: "j" }] } } })).toBe("2");
  });

  test("without its last label, annotation and key", async () => {
    const of = `/api/v1/namespaces/${namespace}/configmaps`;
    const metadata = { name: "emptied", labels: { l: "1" }, annotations: { a: "1" } };
    await admin.post(of, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" } });
    const patch = { data: { a: null }, metadata: { labels: { l: null }, annotations: { a: null } } };
    const { body } = await admin.reply("PATCH", `${of}/emptied`, {
      body: patch,
      type: "application/merge-patch+json",
    });
    expect([body.data, body.metadata.labels, body.metadata.annotations]).toEqual([undefined, undefined, undefined]);
  });
});
