import { Readable } from "node:stream";
import { parseExactly, textOfNumber } from "../base/exact-json.ts";
import { cut } from "../base/wording.ts";
import { readApiError } from "../kube/api-error.ts";
import { applyType } from "../kube/apply-body.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "../kube/transport.ts";

/** A function's write as it is shown. */
export interface DryRunWrite {
  readonly function: string;
  readonly method: string;
  /** The API's path, or the URL. */
  readonly to: string;
  /** Shortened. Without the values of a Secret. */
  readonly body?: string;
}

/** Receives each write that is not sent. */
export type OnDryRunWrite = (unsent: DryRunWrite) => void;

/** Maximum number of characters shown of a body. */
const longestBody = 2_000;
/** Maximum size, in bytes, of an object that is read to show a patch on it. */
const objectLimit = 16 * 1024 * 1024;

/** The path of a subresource that may not be readable, unlike `status` and `scale`; the group is its object's path. */
const subresourcePath =
  /^(\/(?:api|apis\/[^/]+)\/[^/]+\/(?:namespaces\/[^/]+\/[^/]+|(?!namespaces\/)[^/]+)\/[^/]+)\/(?!(?:status|scale)$)[^/]+$/;

type Json = { readonly [name: string]: unknown };

/**
 * A function's connection that sends no writes: reads are sent, and writes are shown. The answer to a write is the object as it
 * would be, without what defaults and admission would add.
 */
export class DryRunTransport implements KubeTransport {
  readonly description: string;
  private readonly inner: KubeTransport;
  private readonly functionName: string;
  private readonly tell: OnDryRunWrite;

  constructor(inner: KubeTransport, functionName: string, tell: OnDryRunWrite) {
    this.inner = inner;
    this.description = inner.description;
    this.functionName = functionName;
    this.tell = tell;
  }

  async request(request: KubeRequest): Promise<KubeResponse> {
    if (request.method === "GET") return this.inner.request(request);
    const { method, path, body } = request;
    const given = body === undefined ? undefined : (parseExactly(body.toString()) as Json);
    const shown = given && shownBody(given, path);
    this.tell({ function: this.functionName, method, to: path, ...(shown !== undefined && { body: shown }) });
    const holder = path.match(subresourcePath)?.[1];
    const of = holder ?? (method === "POST" ? `${path}/${nameOf(given)}` : path);
    const found = await this.inner.request({ ...reading(request), path: of });
    const { status } = found;
    if (status !== 404 && status >= 300) return found;
    const there = status === 404 ? undefined : await jsonOf(found);
    // Only the API server knows the effect of a POST to a subresource.
    if (method === "POST" && holder !== undefined) return there ? answer(201, success) : missing(of);
    if (method === "POST") return there ? conflict("AlreadyExists", `${of} already exists`) : answer(201, given);
    const isApply = request.headers?.["content-type"] === applyType;
    if (!there) return isApply ? answer(201, given) : missing(of);
    if (method === "DELETE") return answer(200, success);
    if (method === "PUT" && isOutdated(there, given)) return conflict("Conflict", `${of} has been modified`);
    // A list of JSON patch operations is shown, but not applied.
    return answer(200, Array.isArray(given) ? there : merged(there, given ?? {}));
  }

  async json<T>(request: KubeRequest, limit?: number): Promise<T> {
    if (request.method === "GET") return this.inner.json(request, limit);
    const response = await this.request(request);
    if (response.status >= 400) throw await readApiError(response);
    return (await jsonOf(response)) as T;
  }

  /** Does nothing, because the connection belongs to the caller. */
  async close(): Promise<void> {}
}

/** Returns the body as it is shown. */
function shownBody(given: Json, path: string): string {
  const isSecret = /\/secrets(?:\/|$)/.test(path);
  const hide = (key: string, value: unknown) =>
    isSecret && (key === "data" || key === "stringData") && typeof value === "object" && value !== null
      ? Object.fromEntries(Object.keys(value).map((name) => [name, "[redacted]"]))
      : value;
  return cut(JSON.stringify(given, hide), longestBody);
}

/** Returns the request that reads the object instead. */
function reading({ purpose, timeoutMs, lastLook, signal }: KubeRequest): Omit<KubeRequest, "path"> {
  return {
    method: "GET",
    ...(purpose && { purpose }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(lastLook && { lastLook }),
    ...(signal && { signal }),
  };
}

async function jsonOf({ body }: KubeResponse): Promise<Json> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > objectLimit) throw new Error("the object is too large to be shown");
    chunks.push(chunk);
  }
  return parseExactly(Buffer.concat(chunks).toString()) as Json;
}

const metadataOf = (object: Json | undefined): Json => (object?.metadata ?? {}) as Json;

/** An object whose name the server would generate does not exist yet. */
const nameOf = (object: Json | undefined): string => encodeURIComponent(String(metadataOf(object).name ?? "-"));

function isOutdated(there: Json, given: Json | undefined): boolean {
  const { resourceVersion } = metadataOf(given);
  return resourceVersion !== undefined && resourceVersion !== metadataOf(there).resourceVersion;
}

/** Returns the result of a merge patch (RFC 7386): null deletes, objects are merged, other values are replaced. */
function merged(there: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(there) ? { ...there } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) && textOfNumber(value) === undefined;

const answer = (status: number, value: unknown): KubeResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: Readable.from([Buffer.from(JSON.stringify(value ?? {}))]),
});

const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

const failure = (code: number, reason: string, message: string): KubeResponse =>
  answer(code, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code, reason, message });

const conflict = (reason: "AlreadyExists" | "Conflict", message: string): KubeResponse => failure(409, reason, message);
const missing = (path: string): KubeResponse => failure(404, "NotFound", `${path} not found`);
