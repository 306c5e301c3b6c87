import type { Dice } from "../laws/random.ts";

/** A JSON object that is sent as it is. */
export type Json = Record<string, unknown>;

/** One kind, and valid objects of it that use most of its fields. */
interface Kind {
  readonly apiVersion: string;
  readonly plural: string;
  readonly kind: string;
  readonly bases: readonly Json[];
}

const labels = { app: "web" };
const probe = { httpGet: { path: "/ok", port: 8080 }, periodSeconds: 5 };
const container = {
  name: "web",
  image: "registry.example/web:1",
  command: ["serve"],
  args: ["--port", "8080"],
  ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
  env: [
    { name: "MODE", value: "a" },
    { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
    { name: "TOKEN", valueFrom: { secretKeyRef: { name: "s", key: "token", optional: true } } },
  ],
  envFrom: [{ configMapRef: { name: "c" } }],
  resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "1", memory: "128Mi" } },
  volumeMounts: [{ name: "data", mountPath: "/data", readOnly: true }],
  livenessProbe: probe,
  readinessProbe: { tcpSocket: { port: "http" } },
  lifecycle: { preStop: { exec: { command: ["sleep", "1"] } } },
  securityContext: { runAsNonRoot: true, capabilities: { drop: ["ALL"] }, allowPrivilegeEscalation: false },
  imagePullPolicy: "IfNotPresent",
};
const podSpec = {
  serviceAccountName: "default",
  restartPolicy: "Always",
  terminationGracePeriodSeconds: 10,
  initContainers: [{ name: "init", image: "i" }],
  containers: [container],
  volumes: [
    { name: "data", emptyDir: { sizeLimit: "1Gi" } },
    { name: "config", configMap: { name: "c", items: [{ key: "a", path: "a.txt" }] } },
    { name: "secret", secret: { secretName: "s", defaultMode: 256 } },
  ],
  nodeSelector: { "kubernetes.io/os": "linux" },
  tolerations: [{ key: "k", operator: "Equal", value: "v", effect: "NoSchedule" }],
  affinity: {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 1,
          podAffinityTerm: { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: labels } },
        },
      ],
    },
  },
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", labelSelector: { matchLabels: labels } },
  ],
  securityContext: { runAsUser: 1000, fsGroup: 1000, seccompProfile: { type: "RuntimeDefault" } },
  hostAliases: [{ ip: "10.0.0.1", hostnames: ["a.example"] }],
  dnsPolicy: "ClusterFirst",
};
const template = { metadata: { labels }, spec: podSpec };
const selector = { matchLabels: labels };
const onFailure = { metadata: { labels }, spec: { ...podSpec, restartPolicy: "OnFailure" } };
const job = { parallelism: 2, completions: 4, backoffLimit: 3, activeDeadlineSeconds: 600, template: onFailure };
const claim = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const rules = [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list"] }];

/** The kinds that handlers write, each with its valid objects. */
export const kinds: readonly Kind[] = [
  {
    ...of("v1", "ConfigMap", "configmaps"),
    bases: [{ data: { a: "1", "b.txt": "x" }, binaryData: { c: "AAE=" }, immutable: false }],
  },
  {
    ...of("v1", "Secret", "secrets"),
    bases: [
      { type: "Opaque", data: { token: "YQ==" }, stringData: { b: "c" } },
      { type: "kubernetes.io/basic-auth", stringData: { username: "u", password: "p" } },
    ],
  },
  {
    ...of("v1", "Service", "services"),
    bases: [
      { spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: "http" }], type: "ClusterIP" } },
      { spec: { type: "NodePort", ports: [{ port: 80, targetPort: 8080 }], sessionAffinity: "ClientIP" } },
      { spec: { type: "ExternalName", externalName: "db.example.com" } },
    ],
  },
  { ...of("v1", "Pod", "pods"), bases: [{ spec: podSpec }] },
  {
    ...of("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    bases: [{ spec: { ...claim, storageClassName: "fast", volumeMode: "Filesystem" } }],
  },
  { ...of("v1", "ServiceAccount", "serviceaccounts"), bases: [{ imagePullSecrets: [{ name: "s" }] }] },
  { ...of("v1", "ResourceQuota", "resourcequotas"), bases: [{ spec: { hard: { pods: "10", "requests.cpu": "4" } } }] },
  {
    ...of("v1", "LimitRange", "limitranges"),
    bases: [{ spec: { limits: [{ type: "Container", default: { cpu: "1" }, defaultRequest: { cpu: "100m" } }] } }],
  },
  {
    ...of("apps/v1", "Deployment", "deployments"),
    bases: [
      {
        spec: {
          ...{ replicas: 2, selector, template, minReadySeconds: 1, revisionHistoryLimit: 3 },
          strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } },
        },
      },
    ],
  },
  {
    ...of("apps/v1", "StatefulSet", "statefulsets"),
    bases: [
      {
        spec: {
          ...{ replicas: 1, serviceName: "web", selector, template, podManagementPolicy: "Parallel" },
          volumeClaimTemplates: [{ metadata: { name: "store" }, spec: claim }],
          updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
        },
      },
    ],
  },
  {
    ...of("apps/v1", "DaemonSet", "daemonsets"),
    bases: [{ spec: { selector, template, updateStrategy: { rollingUpdate: { maxUnavailable: 1 } } } }],
  },
  { ...of("batch/v1", "Job", "jobs"), bases: [{ spec: job }] },
  {
    ...of("batch/v1", "CronJob", "cronjobs"),
    bases: [
      {
        spec: {
          ...{ schedule: "0 3 * * *", timeZone: "Europe/Berlin", concurrencyPolicy: "Forbid" },
          ...{ successfulJobsHistoryLimit: 3, startingDeadlineSeconds: 60, jobTemplate: { spec: job } },
        },
      },
    ],
  },
  {
    ...of("networking.k8s.io/v1", "Ingress", "ingresses"),
    bases: [
      {
        spec: {
          ingressClassName: "nginx",
          tls: [{ hosts: ["a.example.com"], secretName: "tls" }],
          rules: [
            {
              host: "a.example.com",
              http: {
                paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "web", port: { number: 80 } } } }],
              },
            },
          ],
        },
      },
    ],
  },
  {
    ...of("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    bases: [
      {
        spec: {
          podSelector: selector,
          policyTypes: ["Ingress", "Egress"],
          ingress: [{ from: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } }], ports: [{ port: 80 }] }],
          egress: [{ to: [{ namespaceSelector: selector }], ports: [{ protocol: "UDP", port: 53, endPort: 60 }] }],
        },
      },
    ],
  },
  {
    ...of("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    bases: [{ spec: { minAvailable: "50%", selector, unhealthyPodEvictionPolicy: "AlwaysAllow" } }],
  },
  {
    ...of("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    bases: [
      {
        spec: {
          ...{ minReplicas: 1, maxReplicas: 5 },
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
          metrics: [
            { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } },
          ],
          behavior: { scaleDown: { policies: [{ type: "Percent", value: 50, periodSeconds: 60 }] } },
        },
      },
    ],
  },
  { ...of("rbac.authorization.k8s.io/v1", "Role", "roles"), bases: [{ rules }] },
  {
    ...of("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    bases: [
      {
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" },
        subjects: [{ kind: "ServiceAccount", name: "a", namespace: "n" }],
      },
    ],
  },
  {
    ...of("coordination.k8s.io/v1", "Lease", "leases"),
    bases: [{ spec: { holderIdentity: "a", leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.000000Z" } }],
  },
];

function of(apiVersion: string, kind: string, plural: string) {
  return { apiVersion, kind, plural };
}

/** Values that are wrong in most places, and right in some. */
const odd: readonly unknown[] = [
  ...["", "x", "Bad_Name", "-a", "a".repeat(64), "a".repeat(254), "1.5.5", "100%", "10.0.0.1", "0 0 * * *"],
  ...[0, -1, 1, 65_536, 2 ** 31, 1.5, true, false, null],
  ...[[], {}, ["x"], ["x", "x"], { a: "b" }, { a: 1 }],
];

interface Spot {
  readonly holder: Record<string, unknown> | unknown[];
  readonly key: string | number;
}

/** All places of a value below `holder`. */
function* spots(holder: unknown): Generator<Spot> {
  if (typeof holder !== "object" || holder === null) return;
  const keys = Array.isArray(holder) ? holder.keys() : Object.keys(holder);
  for (const key of keys) {
    yield { holder: holder as Spot["holder"], key };
    yield* spots((holder as Record<string, unknown>)[key as string]);
  }
}

/** Changes one place of an object, in its spec or its metadata. */
export function mutated(dice: Dice, base: Json): { readonly object: Json; readonly change: string } {
  const object = structuredClone(base);
  const { apiVersion, kind, ...content } = object;
  const places = [...spots(content)];
  const { holder, key } = dice.pick(places);
  const values = holder as Record<string | number, unknown>;
  const was = values[key];
  const at = `${String(key)}=${JSON.stringify(was)?.slice(0, 40)}`;
  const way = dice.pick(["drop", "odd", "odd", "odd", "twice", "unknown"] as const);
  if (way === "drop") {
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete values[key];
    return { object, change: `without ${at}` };
  }
  if (way === "twice" && Array.isArray(holder)) {
    holder.push(structuredClone(was));
    return { object, change: `twice ${at}` };
  }
  if (way === "unknown" && typeof was === "object" && was !== null && !Array.isArray(was)) {
    (was as Json).nope = "x";
    return { object, change: `unknown field in ${String(key)}` };
  }
  const value = dice.pick(odd);
  values[key] = structuredClone(value);
  return { object, change: `${at} -> ${JSON.stringify(value)?.slice(0, 40)}` };
}
