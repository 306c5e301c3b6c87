// An API server of many kinds of small objects: it sends all that exist to whoever watches, and then changes at a steady
// pace when told to. A process of its own, so that its work is nobody's figure.
// Arguments: kinds, objects of each kind, where to write the kubeconfig.
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { makeCertificates } from "../../runtime/cluster/certificates.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { type FromServer, group, kindOf, type ToServer } from "./many-objects.ts";

/** How often changes are sent, in milliseconds; each time those that are due. */
const paceMs = 5;
const pieceBytes = 64 * 1024;

const [kinds = 0, objects = 0] = process.argv.slice(2, 4).map(Number);
const kubeconfigPath = process.argv[4] ?? "";
const watchers = new Map<number, ServerResponse>();
let revision = kinds * objects + 1;

const collection = new RegExp(`^/apis/${group}/v1/things(\\d+)$`);
const resources = Array.from({ length: kinds }, (_, index) => ({
  name: `things${index}`,
  singularName: `thing${index}`,
  namespaced: true,
  kind: kindOf(index),
  verbs: ["get", "list", "watch"],
}));
const documents: Readonly<Record<string, object>> = {
  "/version": { major: "1", minor: "36", gitVersion: "v1.36.3" },
  [`/apis/${group}/v1`]: { kind: "APIResourceList", groupVersion: `${group}/v1`, resources },
  "/api/v1/namespaces/kube-system": {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "kube-system", uid: "8c2f4f4e-7f3d-4b0a-8a55-0c5d6a0b7a11", resourceVersion: "1" },
  },
};

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "https://bench");
  const kind = collection.exec(url.pathname)?.[1];
  if (kind !== undefined && url.searchParams.get("watch")) {
    void watch(Number(kind), url, response);
    return;
  }
  const document = documents[url.pathname];
  const body = document ?? { apiVersion: "v1", kind: "Status", status: "Failure", reason: "NotFound", code: 404 };
  response.writeHead(document ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function watch(kind: number, url: URL, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  if (url.searchParams.get("fieldSelector") !== null) {
    response.write(line("BOOKMARK", marker(kind)));
    return;
  }
  if (url.searchParams.get("sendInitialEvents") === "true") {
    let piece = "";
    for (let index = 0; index < objects; index++) {
      piece += line("ADDED", thing(kind, index, kind * objects + index + 2));
      if (piece.length < pieceBytes && index < objects - 1) continue;
      const full = !response.write(piece);
      piece = "";
      if (full) await new Promise((resolve) => response.once("drain", resolve));
    }
    response.write(line("BOOKMARK", marker(kind)));
  }
  watchers.set(kind, response);
}

function change({ perSecond, seconds }: ToServer): void {
  const began = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(perSecond * seconds, Math.floor(((performance.now() - began) * perSecond) / 1000));
    for (; sent < due; sent++) {
      const kind = sent % kinds;
      watchers.get(kind)?.write(line("MODIFIED", thing(kind, Math.floor(sent / kinds) % objects, ++revision)));
    }
    if (sent < perSecond * seconds) return;
    clearInterval(timer);
    process.send?.({ type: "sent" } satisfies FromServer);
  }, paceMs);
}

const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

const marker = (kind: number) => ({
  apiVersion: `${group}/v1`,
  kind: kindOf(kind),
  metadata: { resourceVersion: String(revision), annotations: { "k8s.io/initial-events-end": "true" } },
});

function thing(kind: number, index: number, resourceVersion: number): object {
  return {
    apiVersion: `${group}/v1`,
    kind: kindOf(kind),
    metadata: {
      name: `thing-${index.toString(36).padStart(5, "0")}`,
      namespace: `team-${index % 20}`,
      uid: `3f1c7b52-8d0e-4a55-${kind.toString(16).padStart(4, "0")}-${index.toString(16).padStart(12, "0")}`,
      resourceVersion: String(resourceVersion),
      generation: 1,
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { app: `service-${index % 10}`, "app.kubernetes.io/part-of": "shop" },
    },
    spec: { replicas: index % 7, image: `registry.example.com/shop/service-${index % 10}:1.0.${resourceVersion}` },
    status: { phase: "Ready", observedGeneration: 1 },
  };
}

const { ca, certificate, key } = await makeCertificates(Date.now());
const server = createServer({ key, cert: certificate, ALPNProtocols: ["http/1.1"] }, (request, response) => {
  request.resume().on("end", () => answer(request, response));
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  writeFileSync(kubeconfigPath, kubeconfigOf({ url: `https://127.0.0.1:${port}`, ca, token: "bench" }));
  const objectBytes = line("ADDED", thing(0, 0, revision)).length;
  process.send?.({ type: "listening", objectBytes } satisfies FromServer);
});
process.on("message", change);
process.on("disconnect", () => process.exit());
