import { Headers as WebHeaders } from "undici";
import { version } from "../base/version.ts";
import { fetchFailed } from "./failure.ts";

/** Headers that belong to the connection, not to the message: the runtime's to set. */
const reserved = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Headers that are for one origin alone: a redirect to another does not get them (WHATWG fetch, HTTP-redirect fetch). */
const personal = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Headers about a body, which go with it. */
const ofBody = new Set(["content-encoding", "content-language", "content-location", "content-type"]);

/** Bytes of all request headers: what common servers take. */
const headerLimit = 32 * 1024;

export type Headers = readonly (readonly [name: string, value: string])[];

/** What a request says unless its handler does, as with undici's fetch. */
const usual: Headers = [
  ["accept", "*/*"],
  ["accept-language", "*"],
  ["user-agent", `watchfire/${version}`],
];

/**
 * A guest's headers: names in lower case, several values of one name in one, none with white space around it, as WHATWG fetch
 * sends them. Throws a FetchError for one that it may not set or that is none.
 */
export function checkedHeaders(headers: Headers): Headers {
  let size = 0;
  const checked = headers.map(([name, untrimmed]) => {
    const value = untrimmed.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    const lower = name.toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lower)) throw fetchFailed(`${JSON.stringify(name)} is no header's name`);
    if (reserved.has(lower) || lower.startsWith("proxy-")) throw fetchFailed(`the header ${lower} cannot be set`);
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) throw fetchFailed(`the value of the header ${lower} cannot be sent`);
    size += lower.length + value.length;
    if (size > headerLimit) throw fetchFailed(`the headers are larger than ${headerLimit} bytes`);
    return [lower, value] as [string, string];
  });
  return [...new WebHeaders(checked)];
}

/** The headers to send: a handler's, and the usual ones that it did not set. */
export function sentHeaders(headers: Headers): Headers {
  const set = new Set(headers.map(([name]) => name));
  return [...headers, ...usual.filter(([name]) => !set.has(name))];
}

/** The headers that go along with a redirect. */
export function redirectedHeaders(headers: Headers, sameOrigin: boolean, keepsBody: boolean): Headers {
  return headers.filter(([name]) => (sameOrigin || !personal.has(name)) && (keepsBody || !ofBody.has(name)));
}

/** Headers of the connection that brought a response. */
const ofConnection = ["connection", "keep-alive", "transfer-encoding"];
/** Headers of a coded body. */
const ofCoding = ["content-encoding", "content-length"];

/** A response's headers as pairs, without those that no longer hold once the body is whole, and decoded where it is. */
export function responseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  isDecoded: boolean,
): Headers {
  const dropped = new Set(isDecoded ? [...ofConnection, ...ofCoding] : ofConnection);
  return Object.entries(headers).flatMap(([name, value]) => {
    if (value === undefined || dropped.has(name)) return [];
    return Array.isArray(value) ? value.map((each) => [name, each] as const) : [[name, value] as const];
  });
}
