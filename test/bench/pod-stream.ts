/** A watch stream of Pod events as an API server sends it: lines of JSON, about 2.8 KB each. */
export interface PodStream {
  readonly lines: readonly Buffer[];
  readonly bytes: number;
  readonly lastResourceVersion: string;
  /** The lines that match a label selector, in pieces of about 64 KiB that contain whole lines. */
  pieces(labelSelector: string): readonly Buffer[];
  /** All lines in the metadata form, in pieces of the same kind. */
  metadataPieces(): readonly Buffer[];
}

/** Each Pod is added, then changes nine times. */
const eventsPerPod = 10;
/** Number of values of the label `shard`, over which Pods are distributed. */
export const shards = 100;
const pieceBytes = 64 * 1024;
/** The app of one Pod in ten, which the label filter selects. */
const rareApp = "web";
/** The selector in the labelled function's manifest. */
export const rareSelector = `app=${rareApp}`;

/** The annotation with the time when an event was written, in epoch milliseconds. */
const stampName = "bench/sent";
const stampLength = 13;
const stampPrefix = Buffer.from(`"${stampName}":"`);

/** Writes the time into a line. */
export function stamp(line: Buffer, now: number): void {
  line.write(String(now).padStart(stampLength, "0"), line.indexOf(stampPrefix) + stampPrefix.length, "latin1");
}

/** Makes `count` events: every Pod is added, then all Pods change in turns. */
export function makePodStream(count: number): PodStream {
  const pods = Math.ceil(count / eventsPerPod);
  const lines = Array.from({ length: count }, (_, index) => {
    const type = index < pods ? "ADDED" : "MODIFIED";
    const object = pod(index % pods, index + 2, Math.floor(index / pods), index === count - 1);
    return Buffer.from(`${JSON.stringify({ type, object })}\n`);
  });
  const all = pack(lines);
  return {
    lines,
    bytes: lines.reduce((sum, line) => sum + line.length, 0),
    lastResourceVersion: String(count + 1),
    metadataPieces: () => pack(lines.map(metadataLine)),
    pieces: (labelSelector) => {
      if (labelSelector === "") return all;
      const pair = /^([\w./-]+)=(\w+)$/.exec(labelSelector);
      if (!pair)
        throw new Error(`the bench's server knows selectors of the form key=value alone, got ${labelSelector}`);
      return pack(lines.filter((line) => line.includes(`"${pair[1]}":"${pair[2]}"`)));
    },
  };
}

function metadataLine(line: Buffer): Buffer {
  const { type, object } = JSON.parse(line.toString());
  const { metadata } = object;
  const partial = { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
  return Buffer.from(`${JSON.stringify({ type, object: partial })}\n`);
}

/** Pieces of about 64 KiB, each of whole lines. */
export function pack(lines: readonly Buffer[]): Buffer[] {
  const pieces: Buffer[] = [];
  let piece: Buffer[] = [];
  let size = 0;
  for (const line of lines) {
    piece.push(line);
    size += line.length;
    if (size < pieceBytes) continue;
    pieces.push(Buffer.concat(piece));
    piece = [];
    size = 0;
  }
  if (piece.length > 0) pieces.push(Buffer.concat(piece));
  return pieces;
}

/**
 * A Pod as created by a Deployment, with a service account's volume, three conditions and one entry of managedFields.
 */
function pod(index: number, resourceVersion: number, change: number, isLast: boolean): object {
  const app = index % 10 === 0 ? rareApp : `service${index % 10}`;
  const name = `${app}-6d4cf56db6-${index.toString(36).padStart(5, "0")}`;
  const at = new Date(Date.UTC(2026, 0, 1) + resourceVersion * 1000).toISOString().replace(".000", "");
  const image = `registry.example.com/shop/${app}:1.${index % 40}.${change}`;
  const condition = (type: string) => ({ type, status: "True", lastProbeTime: null, lastTransitionTime: at });
  const probe = { httpGet: { path: "/healthz", port: "http", scheme: "HTTP" }, periodSeconds: 10, timeoutSeconds: 1 };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      generateName: `${app}-6d4cf56db6-`,
      namespace: `team-${index % 20}`,
      uid: `3f1c7b52-8d0e-4a55-9c1f-${index.toString(16).padStart(12, "0")}`,
      resourceVersion: String(resourceVersion),
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: {
        app,
        shard: String(index % shards),
        "pod-template-hash": "6d4cf56db6",
        "app.kubernetes.io/part-of": "shop",
      },
      annotations: {
        [stampName]: "0".repeat(stampLength),
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        ...(isLast && { "bench/last": "true" }),
      },
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "ReplicaSet",
          name: `${app}-6d4cf56db6`,
          uid: "b0a5a1a2-59b4-4cb6-b7c4-52a3d8a0f9d1",
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [
        {
          manager: "kubelet",
          operation: "Update",
          apiVersion: "v1",
          time: at,
          fieldsType: "FieldsV1",
          fieldsV1: {
            "f:status": { "f:conditions": { 'k:{"type":"Ready"}': { ".": {}, "f:status": {} } }, "f:phase": {} },
          },
          subresource: "status",
        },
      ],
    },
    spec: {
      containers: [
        {
          name: app,
          image,
          ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
          env: [
            { name: "LOG_LEVEL", value: "info" },
            { name: "POD_NAME", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } },
          ],
          resources: { limits: { memory: "256Mi" }, requests: { cpu: "100m", memory: "256Mi" } },
          volumeMounts: [
            { name: "kube-api-access", readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" },
          ],
          livenessProbe: probe,
          readinessProbe: probe,
          terminationMessagePath: "/dev/termination-log",
          imagePullPolicy: "IfNotPresent",
        },
      ],
      volumes: [
        {
          name: "kube-api-access",
          projected: { defaultMode: 420, sources: [{ serviceAccountToken: { path: "token" } }] },
        },
      ],
      restartPolicy: "Always",
      serviceAccountName: app,
      nodeName: `node-${index % 50}`,
      schedulerName: "default-scheduler",
    },
    status: {
      phase: "Running",
      conditions: [condition("Initialized"), condition("Ready"), condition("PodScheduled")],
      hostIP: `10.0.0.${index % 250}`,
      podIP: `10.1.${Math.floor(index / 250) % 250}.${index % 250}`,
      startTime: at,
      containerStatuses: [
        {
          name: app,
          image,
          imageID: `registry.example.com/shop/${app}@sha256:${"4f2a".repeat(16)}`,
          containerID: `containerd://${"9be1".repeat(16)}`,
          ready: true,
          started: true,
          restartCount: change,
          state: { running: { startedAt: at } },
        },
      ],
      qosClass: "Burstable",
    },
  };
}
