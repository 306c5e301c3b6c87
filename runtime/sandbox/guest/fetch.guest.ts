import { FetchError } from "../../../sdk/errors.ts";
import type { Context, FetchInit, FetchResponse } from "../../../sdk/index.ts";
import { bodyFault, type Call, type FetchResult } from "../../../sdk/operations.ts";
import { base64ToBytes, bytesToBase64, bytesToText, textToBytes } from "./bytes.guest.ts";

/** `ctx.fetch` over the parent, which alone decides where a function may connect. */
export function createFetch(call: Call): Context["fetch"] {
  return async (url, init = {}) => {
    const { signal } = init;
    signal?.throwIfAborted();
    const answer = call("fetch", {
      url: String(url),
      ...(init.method === undefined ? {} : { method: String(init.method) }),
      ...(init.headers === undefined ? {} : { headers: headerList(init.headers) }),
      ...(init.body === undefined || init.body === null ? {} : { body: sentBody(bodyBytes(init.body)) }),
      ...(init.redirect === undefined ? {} : { redirect: init.redirect }),
    });
    return responseOf(await (signal ? untilAborted(answer, signal) : answer));
  };
}

function untilAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    answer.then(resolve, reject);
  });
}

function headerList(headers: NonNullable<FetchInit["headers"]>): [string, string][] {
  const pairs = Symbol.iterator in headers ? [...(headers as Iterable<[string, string]>)] : Object.entries(headers);
  return pairs.map(([name, value]) => [String(name), String(value)]);
}

function bodyBytes(body: NonNullable<FetchInit["body"]>): Uint8Array {
  if (typeof body === "string") return textToBytes(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body as ArrayBuffer);
  return textToBytes(String(body));
}

/** Looked at before it is base64, whose length its author does not know. */
function sentBody(bytes: Uint8Array): string {
  const fault = bodyFault(bytes.length);
  if (fault !== undefined) throw new FetchError(fault);
  return bytesToBase64(bytes);
}

function responseOf(result: FetchResult): FetchResponse {
  const headers = new Map<string, string>();
  for (const [name, value] of result.headers) {
    const key = name.toLowerCase();
    const before = headers.get(key);
    headers.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  const bytes = () => base64ToBytes(result.body);
  return {
    status: result.status,
    statusText: result.statusText,
    ok: result.status >= 200 && result.status <= 299,
    url: result.url,
    redirected: result.redirected,
    headers: {
      get: (name) => headers.get(String(name).toLowerCase()) ?? null,
      has: (name) => headers.has(String(name).toLowerCase()),
    },
    text: async () => bytesToText(bytes()),
    json: async () => JSON.parse(bytesToText(bytes())),
    arrayBuffer: async () => bytes().buffer as ArrayBuffer,
  };
}
