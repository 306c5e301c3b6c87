import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { Access, type AccessParts } from "../../runtime/access/access.ts";
import type { CallRecord } from "../../runtime/access/observer.ts";
import { OwnObjects } from "../../runtime/access/own-objects.ts";
import { type Clock, systemClock } from "../../runtime/base/clock.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { FunctionManifest, Permission } from "../../runtime/manifest/function.ts";
import type { Caller, HostReply } from "../../runtime/sandbox/host-calls.ts";

/** One request as received on the socket. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
  /** The body as received. */
  readonly text: string;
}

/** An answer; `undefined` is a 404 with a Status. `never`: the request stays open. */
export type Answer = { status?: number; headers?: Record<string, string>; body?: unknown } | "never" | undefined;
export type Script = (request: Received) => Answer;

const discovery = (groupVersion: string, resources: object[]) => ({ kind: "APIResourceList", groupVersion, resources });
const verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
const documents: Record<string, unknown> = {
  "/api/v1": discovery("v1", [
    { name: "configmaps", namespaced: true, kind: "ConfigMap", verbs },
    { name: "secrets", namespaced: true, kind: "Secret", verbs },
    { name: "namespaces", namespaced: false, kind: "Namespace", verbs },
    { name: "pods", namespaced: true, kind: "Pod", verbs },
    { name: "serviceaccounts", namespaced: true, kind: "ServiceAccount", verbs },
    { name: "nodes", namespaced: false, kind: "Node", verbs },
  ]),
  "/apis/apps/v1": discovery("apps/v1", [
    { name: "deployments", namespaced: true, kind: "Deployment", verbs },
    { name: "deployments/status", namespaced: true, kind: "Deployment", verbs: ["get", "patch", "update"] },
    { name: "deployments/scale", namespaced: true, kind: "Scale", verbs: ["get", "patch", "update"] },
  ]),
  "/apis": { kind: "APIGroupList", groups: [] },
};

/** A Status, as the API server makes one. */
export const status = (code: number, reason: string, more: object = {}) => ({
  status: code,
  body: { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: `said ${reason}`, ...more },
});

/**
 * An HTTP server on loopback that answers discovery itself, and all other requests by a script. It is closed after the test.
 */
export async function apiServer(script: Script = () => ({ body: {} })) {
  const received: Received[] = [];
  const asked: string[] = [];
  const server: Server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    asked.push(url.pathname);
    const send = (code: number, body: unknown, headers: Record<string, string> = {}) => {
      response.writeHead(code, { "content-type": "application/json", ...headers });
      response.end(typeof body === "string" ? body : JSON.stringify(body ?? {}));
    };
    if (url.pathname in documents) return send(200, documents[url.pathname]);
    if (/^\/(?:api(?:\/[^/]+)?|apis(?:\/[^/]+){0,2})$/.test(url.pathname)) return send(404, "404 page not found");
    const seen: Received = {
      method: request.method ?? "",
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: text === "" ? undefined : JSON.parse(text),
      text,
    };
    received.push(seen);
    const answer: Answer = script(seen) ?? status(404, "NotFound");
    if (answer === "never") return;
    send(answer.status ?? 200, answer.body, answer.headers);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = connectDirect({ server: origin });
  onTestFinished(async () => {
    await transport.close();
    server.closeAllConnections();
    server.close();
  });
  /** `received` has all requests except discovery; `asked` has the path of every request. */
  return { transport, origin, received, asked };
}

/** A manifest for tests in which only the permissions matter. */
export function manifestOf(powers: Partial<FunctionManifest> = {}): FunctionManifest {
  return {
    name: "f",
    file: "functions/f/function.yaml",
    handler: "/f/handler.ts",
    triggers: [],
    reads: [],
    cacheBytes: 64 << 20,
    stateBytes: 64 * 1024,
    permissions: [],
    delivery: {
      concurrency: 1,
      mode: "All",
      timeoutMs: 30_000,
      retry: { maxAttempts: 1, initialDelayMs: 1, maxDelayMs: 1, factor: 1 },
      onFailure: "Drop",
      deadLetters: { maxCount: 1, maxBytes: 1 },
    },
    resources: { memoryBytes: 1, cpuPerEventMs: 1 },
    isolation: "Handler",
    schedules: [],
    egress: [],
    env: [],
    ...powers,
  };
}

/** The objects of a runtime with the account `watchfire` in the namespace `watchfire`. */
export const ownObjects = new OwnObjects({ namespace: "watchfire", account: "watchfire" });

/** The caller in these tests: function `f`, for a ConfigMap in `demo`. */
export const caller: Caller = {
  function: "f",
  trigger: "t",
  id: "1",
  object: { apiVersion: "v1", kind: "ConfigMap", namespace: "demo", name: "settings", uid: "u1" },
  attempt: 1,
};

/** A rule that grants everything. */
export const everything: Permission = { apiGroups: ["*"], resources: ["*"], verbs: ["*"] };

export interface AccessSetup extends Partial<Omit<AccessParts, "functions">> {
  readonly script?: Script;
  readonly manifest?: Partial<FunctionManifest>;
  readonly clock?: Clock;
}

/** Access over a real HTTP connection to a scripted API server. */
export async function accessTo({ script, manifest, clock = systemClock, ...parts }: AccessSetup = {}) {
  const server = await apiServer(script);
  const records: CallRecord[] = [];
  const functions = new Map([["f", manifestOf(manifest)]]);
  const access = new Access({
    transport: server.transport,
    discovery: new Discovery(server.transport, systemClock),
    own: ownObjects,
    functions,
    clock,
    random: () => 0.5,
    log: pino({ level: "silent" }),
    observer: { called: (record) => records.push(record) },
    ...parts,
  });
  onTestFinished(() => access.close());
  const attempt = new AbortController();
  return {
    ...server,
    access,
    records,
    functions,
    attempt,
    call: (operation: string, args: unknown, signal = attempt.signal): Promise<HostReply> =>
      access.call(caller, operation, typeof args === "string" ? args : JSON.stringify(args), signal),
  };
}

/** The error of a reply. Throws if the reply is a success. */
export function errorOf(reply: HostReply) {
  if (reply.ok) throw new Error(`expected an error, got ${reply.json}`);
  return reply.error;
}
