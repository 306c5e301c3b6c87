import { Agent, request } from "undici";
import { type WatchQuery, WatchReader } from "./watch-reader.ts";

/** Access to a cluster as one user. `ca`, `cert` and `key` are PEM. */
export interface Access {
  readonly url: string;
  readonly ca: string;
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface Meta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: { uid: string }[];
  managedFields?: { manager: string; operation: string; subresource?: string; fieldsV1: unknown }[];
  continue?: string;
  remainingItemCount?: number;
}

/** Any JSON body of the API: an object, a list or a Status. */
export interface Body {
  apiVersion: string;
  kind: string;
  metadata: Meta;
  items: Body[];
  // biome-ignore lint/suspicious/noExplicitAny: -- a test asserts on fields of every kind; their types are what it tests
  [field: string]: any;
}

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly text: string;
  /** The parsed body; an empty object if it is not JSON. */
  readonly body: Body;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface RequestOptions {
  readonly query?: Query;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Content type of the body; default `application/json`. A string body is sent unchanged. */
  readonly type?: string;
}

export const patchType = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/**
 * A plain JSON client with one identity. `reply` returns any answer; the other methods throw unless it is a success.
 */
export class Client {
  readonly access: Access;
  private readonly agent: Agent;
  private readonly identity: Readonly<Record<string, string>>;

  constructor(access: Access, impersonation: Readonly<Record<string, string>> = {}) {
    this.access = access;
    this.identity = { ...(access.token ? { authorization: `Bearer ${access.token}` } : {}), ...impersonation };
    const { ca, cert, key } = access;
    this.agent = new Agent({ connect: { ca, ...(cert && key ? { cert, key } : {}) }, allowH2: false });
  }

  async reply(method: string, path: string, options: RequestOptions = {}): Promise<Reply> {
    const hasBody = options.body !== undefined;
    const answer = await request(`${this.access.url}${path}`, {
      method: method as "GET",
      dispatcher: this.agent,
      query: definedOf(options.query),
      headers: {
        accept: "application/json",
        ...(hasBody ? { "content-type": options.type ?? "application/json" } : {}),
        ...this.identity,
        ...options.headers,
      },
      body: !hasBody ? undefined : typeof options.body === "string" ? options.body : JSON.stringify(options.body),
    });
    const text = await answer.body.text();
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text,
      body: text.startsWith("{") ? JSON.parse(text) : {},
    };
  }

  get(path: string, query?: Query, headers?: Record<string, string>): Promise<Body> {
    return this.done("GET", path, { query, headers });
  }

  post(path: string, body: unknown, query?: Query): Promise<Body> {
    return this.done("POST", path, { body, query });
  }

  put(path: string, body: unknown, query?: Query): Promise<Body> {
    return this.done("PUT", path, { body, query });
  }

  patch(path: string, body: unknown, type: keyof typeof patchType = "merge", query?: Query): Promise<Body> {
    return this.done("PATCH", path, { body, type: patchType[type], query });
  }

  delete(path: string, body?: unknown, query?: Query): Promise<Body> {
    return this.done("DELETE", path, { body, query });
  }

  /** Server-side apply as `manager`. */
  apply(path: string, body: unknown, manager: string, query?: Query): Promise<Body> {
    return this.patch(path, body, "apply", { fieldManager: manager, ...query });
  }

  /** Opens a watch. If the answer is not 200, the reader has `status` and `refusal`. */
  watch(path: string, query: WatchQuery, headers?: Record<string, string>): Promise<WatchReader> {
    return WatchReader.open(this.access, path, query, { ...this.identity, ...headers });
  }

  close(): Promise<void> {
    return this.agent.close();
  }

  private async done(method: string, path: string, options: RequestOptions): Promise<Body> {
    const { status, body, text } = await this.reply(method, path, options);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${body.message ?? text}`);
    return body;
  }
}

/** Removes undefined query values, which Undici refuses. */
export function definedOf(query: Query = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(query).flatMap(([k, v]) => (v === undefined ? [] : [[k, String(v)]])));
}
