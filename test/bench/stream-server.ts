// An API server that serves only Pods: its lists are empty, and it streams the bench's events to every watcher on command. It
// runs in a separate process, so that its work is not part of any measured figure.
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { makeCertificates } from "../../runtime/cluster/certificates.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { makePodStream, pack, rareSelector, stamp } from "./pod-stream.ts";

/** A command of the bench to the server. */
export type ToServer =
  /**
   * `perSecond`: sends the events of `seconds` at that pace, each with its time; otherwise all at once. `count`: sends only the
   * first so many.
   */
  { type: "go"; paced?: Pace; count?: number } | { type: "reset" };
export interface Pace {
  readonly perSecond: number;
  readonly seconds: number;
}
/** A message of the server to the bench. */
export type FromServer =
  /** `rare`: number of events that match the label filter's selector. */
  { type: "listening"; bytes: number; rare: number } | { type: "watching" };

const [eventsArgument, kubeconfigPath = ""] = process.argv.slice(2);
const stream = makePodStream(Number(eventsArgument));
const { ca, certificate, key } = await makeCertificates(Date.now());

interface Watcher {
  readonly response: ServerResponse;
  readonly pieces: readonly Buffer[];
  readonly bookmarks: boolean;
}

/**
 * Connected watchers in the order of their connection. If a source gains subscribers, its first watcher is the one that stays.
 */
let watchers: Watcher[] = [];
const tell = (message: FromServer) => process.send?.(message);

const list = (kind: string, items: object[], extra: object = {}) => ({
  apiVersion: "v1",
  kind,
  metadata: { resourceVersion: "1" },
  items,
  ...extra,
});
const resource = (kind: string, name: string, namespaced: boolean) => ({
  name,
  singularName: kind.toLowerCase(),
  namespaced,
  kind,
  verbs: ["create", "delete", "get", "list", "patch", "update", "watch"],
  shortNames: [],
});
const v1 = [resource("Pod", "pods", true), resource("Namespace", "namespaces", false)];
const extensions = { groupVersion: "apiextensions.k8s.io/v1", version: "v1" };
const crds = resource("CustomResourceDefinition", "customresourcedefinitions", false);
const documents: Readonly<Record<string, object>> = {
  "/version": { major: "1", minor: "36", gitVersion: "v1.36.3" },
  "/api": { kind: "APIVersions", versions: ["v1"] },
  "/apis": {
    kind: "APIGroupList",
    apiVersion: "v1",
    groups: [{ name: "apiextensions.k8s.io", versions: [extensions], preferredVersion: extensions }],
  },
  "/api/v1": { kind: "APIResourceList", groupVersion: "v1", resources: v1 },
  // kopf does not start if the server does not have this kind.
  "/apis/apiextensions.k8s.io/v1": {
    kind: "APIResourceList",
    groupVersion: extensions.groupVersion,
    resources: [crds],
  },
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": list("CustomResourceDefinitionList", []),
  "/api/v1/pods": list("PodList", []),
  "/api/v1/namespaces": list("NamespaceList", []),
  "/api/v1/namespaces/kube-system": {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "kube-system", uid: "8c2f4f4e-7f3d-4b0a-8a55-0c5d6a0b7a11", resourceVersion: "1" },
  },
};

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "https://bench");
  if (url.pathname === "/api/v1/pods" && url.searchParams.get("watch")) {
    watch(url, String(request.headers.accept), response);
    return;
  }
  const document = documents[url.pathname];
  if (document && url.searchParams.get("watch")) {
    // The other kinds never have events.
    response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    return;
  }
  const status = document ? 200 : 404;
  const body = document ?? { apiVersion: "v1", kind: "Status", status: "Failure", reason: "NotFound", code: 404 };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function watch(url: URL, accept: string, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  if (url.searchParams.get("sendInitialEvents") === "true") response.write(bookmark("1", true));
  const watcher: Watcher = {
    response,
    pieces: accept.includes("PartialObjectMetadata")
      ? stream.metadataPieces()
      : stream.pieces(url.searchParams.get("labelSelector") ?? ""),
    bookmarks: url.searchParams.get("allowWatchBookmarks") === "true",
  };
  watchers.push(watcher);
  response.once("close", () => {
    watchers = watchers.filter((each) => each !== watcher);
  });
  tell({ type: "watching" });
}

function bookmark(resourceVersion: string, initialEventsEnd = false): string {
  const annotations = initialEventsEnd ? { "k8s.io/initial-events-end": "true" } : undefined;
  const object = { apiVersion: "v1", kind: "Pod", metadata: { resourceVersion, annotations } };
  return `${JSON.stringify({ type: "BOOKMARK", object })}\n`;
}

async function firstWatcher(): Promise<Watcher> {
  for (;;) {
    const [watcher] = watchers;
    if (watcher) return watcher;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** @param count sends only the first so many events */
async function send(count?: number): Promise<void> {
  const { response, pieces, bookmarks } = await firstWatcher();
  for (const piece of count === undefined ? pieces : pack(stream.lines.slice(0, count))) {
    if (!response.write(piece)) await new Promise((resolve) => response.once("drain", resolve));
  }
  if (bookmarks) response.write(bookmark(stream.lastResourceVersion));
}

/** Every millisecond, writes the events that are due. */
async function sendPaced({ perSecond, seconds }: Pace): Promise<void> {
  const { response, bookmarks } = await firstWatcher();
  const { lines, lastResourceVersion } = makePodStream(perSecond * seconds);
  // Otherwise the collector's threads would use both cores for 9 ms when the first event is sent.
  globalThis.gc?.();
  const began = performance.now();
  for (let sent = 0; sent < lines.length; ) {
    const due = lines.slice(sent, Math.ceil(((performance.now() - began) / 1000) * perSecond));
    for (const line of due) stamp(line, Date.now());
    if (due.length > 0) response.write(Buffer.concat(due));
    sent += due.length;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  if (bookmarks) response.write(bookmark(lastResourceVersion));
}

function countLines(pieces: readonly Buffer[]): number {
  let lines = 0;
  for (const piece of pieces) for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) lines++;
  return lines;
}

const server = createServer({ key, cert: certificate, ALPNProtocols: ["http/1.1"] }, (request, response) => {
  request.resume().on("end", () => answer(request, response));
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  const access = { url: `https://127.0.0.1:${port}`, ca, token: "bench" };
  writeFileSync(kubeconfigPath, kubeconfigOf(access));
  tell({ type: "listening", bytes: stream.bytes, rare: countLines(stream.pieces(rareSelector)) });
});
process.on("message", (message: ToServer) => {
  if (message.type === "go") void (message.paced ? sendPaced(message.paced) : send(message.count));
  else {
    // Drops the requests of a reader that was killed.
    server.closeAllConnections();
    watchers = [];
  }
});
process.on("disconnect", () => process.exit());
