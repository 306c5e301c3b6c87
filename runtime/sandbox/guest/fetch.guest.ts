import { FetchError } from "../../../sdk/errors.ts";
import type { Context, FetchInit, FetchResponse } from "../../../sdk/index.ts";
import { bodyFault, type Call, type FetchResult } from "../../../sdk/operations.ts";
import { base64ToBytes, bytesToBase64, bytesToText, textToBytes } from "./bytes.guest.ts";
import { ResponseHeaders } from "./headers.guest.ts";

/** Implements `ctx.fetch` by calls to the parent, which alone decides where a function may connect. `parse` parses JSON. */
export function createFetch(call: Call, parse: (text: string) => unknown): Context["fetch"] {
  return async (url, init = {}) => {
    const { signal } = init;
    signal?.throwIfAborted();
    const given = headerList(init.headers ?? {});
    const headers = [...given, ...bodyType(init.body, given)];
    const answer = call("fetch", {
      url: String(url),
      ...(init.method === undefined ? {} : { method: String(init.method) }),
      ...(headers.length === 0 ? {} : { headers }),
      ...(init.body === undefined || init.body === null ? {} : { body: sentBody(bodyBytes(init.body)) }),
      ...(init.redirect === undefined ? {} : { redirect: init.redirect }),
    });
    return responseOf(await (signal ? untilAborted(answer, signal) : answer), parse);
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

/** Returns the default Content-Type header of a body, as in WHATWG fetch, unless the handler sets one. */
function bodyType(body: FetchInit["body"] | null, given: readonly [string, string][]): [string, string][] {
  if (given.some(([name]) => name.toLowerCase() === "content-type")) return [];
  if (typeof body === "string") return [["content-type", "text/plain;charset=UTF-8"]];
  const isForm = Object.prototype.toString.call(body) === "[object URLSearchParams]";
  return isForm ? [["content-type", "application/x-www-form-urlencoded;charset=UTF-8"]] : [];
}

function bodyBytes(body: NonNullable<FetchInit["body"]>): Uint8Array {
  if (typeof body === "string") return textToBytes(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body as ArrayBuffer);
  return textToBytes(String(body));
}

/**
 * Encodes a body. The size limit is checked before the encoding, because the author knows the body's length and not that of its
 * base64.
 */
function sentBody(bytes: Uint8Array): string {
  const fault = bodyFault(bytes.length);
  if (fault !== undefined) throw new FetchError(fault);
  return bytesToBase64(bytes);
}

function responseOf(result: FetchResult, parse: (text: string) => unknown): FetchResponse {
  const bytes = () => base64ToBytes(result.body);
  return {
    status: result.status,
    statusText: result.statusText,
    ok: result.status >= 200 && result.status <= 299,
    url: result.url,
    redirected: result.redirected,
    headers: new ResponseHeaders(result.headers),
    text: async () => bytesToText(bytes()),
    json: async () => parse(bytesToText(bytes())),
    arrayBuffer: async () => bytes().buffer as ArrayBuffer,
  };
}
