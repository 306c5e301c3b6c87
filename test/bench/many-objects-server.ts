// An API server with many kinds of small objects. It sends all existing objects to each watcher; on command, it then sends
// changes at a steady pace, and creates and deletes namespaces. It runs in a separate process, so that its work is not part of
// any measured figure. Arguments: number of kinds, objects of each kind, path of the kubeconfig, number of namespaces for the
// objects, and optionally `stamped`, with which each change contains the time when it was sent.
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { makeCertificates } from "../../runtime/cluster/certificates.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { type FromServer, group, kindOf, type ToServer } from "./many-objects.ts";

/** Interval in which the due changes are sent, in milliseconds. */
const paceMs = 5;
const pieceBytes = 64 * 1024;

const [kinds = 0, objects = 0] = process.argv.slice(2, 4).map(Number);
const kubeconfigPath = process.argv[4] ?? "";
const namespaces = Number(process.argv[5] ?? 20);
const isStamped = process.argv[6] === "stamped";
/** Watchers by kind, and those of namespaces. */
const watchers = new Map<number, ServerResponse>();
const namespaceWatchers = new Set<ServerResponse>();
let revision = kinds * objects + namespaces + 1;
/** Number of the first namespaces that do not match at present. */
let unlabelled = 0;

const collection = new RegExp(`^/apis/${group}/v1/(?:namespaces/team-(\\d+)/)?things(\\d+)$`);
const resources = Array.from({ length: kinds }, (_, index) => ({
  name: `things${index}`,
  singularName: `thing${index}`,
  namespaced: true,
  kind: kindOf(index),
  verbs: ["get", "list", "watch"],
}));
const documents: Readonly<Record<string, object>> = {
  "/version": { major: "1", minor: "36", gitVersion: "v1.36.3" },
  "/api/v1": {
    kind: "APIResourceList",
    groupVersion: "v1",
    resources: [
      {
        name: "namespaces",
        singularName: "namespace",
        namespaced: false,
        kind: "Namespace",
        verbs: ["get", "list", "watch"],
      },
    ],
  },
  [`/apis/${group}/v1`]: { kind: "APIResourceList", groupVersion: `${group}/v1`, resources },
  "/api/v1/namespaces/kube-system": {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "kube-system", uid: "8c2f4f4e-7f3d-4b0a-8a55-0c5d6a0b7a11", resourceVersion: "1" },
  },
};

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "https://bench");
  const [, place, kind] = collection.exec(url.pathname) ?? [];
  if (kind !== undefined && url.searchParams.get("watch")) {
    void watch(Number(kind), place === undefined ? undefined : Number(place), url, response);
    return;
  }
  if (url.pathname === "/api/v1/namespaces" && url.searchParams.get("watch")) {
    watchNamespaces(url, response);
    return;
  }
  const document = documents[url.pathname];
  const body = document ?? { apiVersion: "v1", kind: "Status", status: "Failure", reason: "NotFound", code: 404 };
  response.writeHead(document ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** @param namespace undefined for all */
async function watch(kind: number, namespace: number | undefined, url: URL, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  if (url.searchParams.get("fieldSelector") !== null) {
    response.write(line("BOOKMARK", thingMarker(kind)));
    return;
  }
  if (url.searchParams.get("sendInitialEvents") === "true") {
    let piece = "";
    const step = namespace === undefined ? 1 : namespaces;
    for (let index = namespace ?? 0; index < objects; index += step) {
      piece += line("ADDED", thing(kind, index, namespaces + kind * objects + index + 2));
      if (piece.length < pieceBytes) continue;
      const full = !response.write(piece);
      piece = "";
      if (full) await new Promise((resolve) => response.once("drain", resolve));
    }
    response.write(piece + line("BOOKMARK", thingMarker(kind)));
  }
  if (namespace === undefined) watchers.set(kind, response);
}

/** Watches the matching namespaces. Every selector is treated as the same. */
function watchNamespaces(url: URL, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  if (url.searchParams.get("sendInitialEvents") === "true") {
    const matching = Array.from({ length: namespaces - unlabelled }, (_, index) => index + unlabelled);
    response.write(matching.map((index) => line("ADDED", namespaceObject(index, index + 2))).join(""));
    response.write(line("BOOKMARK", marker("v1", "Namespace")));
  }
  namespaceWatchers.add(response);
  response.once("close", () => namespaceWatchers.delete(response));
}

function label(type: "leave" | "return", count: number): void {
  unlabelled = type === "leave" ? count : 0;
  const word = type === "leave" ? "DELETED" : "ADDED";
  const lines = Array.from({ length: count }, (_, index) => line(word, namespaceObject(index, ++revision)));
  for (const response of namespaceWatchers) response.write(lines.join(""));
  process.send?.({ type: "sent" } satisfies FromServer);
}

function change(perSecond: number, seconds: number): void {
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

const marker = (apiVersion: string, kind: string) => ({
  apiVersion,
  kind,
  metadata: { resourceVersion: String(revision), annotations: { "k8s.io/initial-events-end": "true" } },
});
const thingMarker = (kind: number) => marker(`${group}/v1`, kindOf(kind));

const namespaceObject = (index: number, resourceVersion: number) => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: {
    name: `team-${index}`,
    uid: `0b6d4f2a-52c7-4e0b-9a53-${index.toString(16).padStart(12, "0")}`,
    resourceVersion: String(resourceVersion),
    labels: { team: "yes" },
  },
});

function thing(kind: number, index: number, resourceVersion: number): object {
  return {
    apiVersion: `${group}/v1`,
    kind: kindOf(kind),
    metadata: {
      name: `thing-${index.toString(36).padStart(5, "0")}`,
      namespace: `team-${index % namespaces}`,
      uid: `3f1c7b52-8d0e-4a55-${kind.toString(16).padStart(4, "0")}-${index.toString(16).padStart(12, "0")}`,
      resourceVersion: String(resourceVersion),
      generation: 1,
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { app: `service-${index % 10}`, "app.kubernetes.io/part-of": "shop" },
    },
    spec: { replicas: index % 7, image: `registry.example.com/shop/service-${index % 10}:1.0.${resourceVersion}` },
    status: {
      phase: "Ready",
      observedGeneration: 1,
      ...(isStamped && { sentAt: performance.timeOrigin + performance.now() }),
    },
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
process.on("message", (message: ToServer) => {
  if (message.type === "change") change(message.perSecond, message.seconds);
  else label(message.type, message.namespaces);
});
process.on("disconnect", () => process.exit());
