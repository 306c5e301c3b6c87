import { Headers as WebHeaders } from "undici";
import { version } from "../base/version.ts";
import { fetchFailed } from "./failure.ts";

/** Headers of the connection, not of the message. Only the runtime sets them. */
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

/** Headers for one origin only. A redirect to another origin does not get them (WHATWG fetch, HTTP-redirect fetch). */
const personal = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Headers that describe a body, removed together with it. */
const ofBody = new Set(["content-encoding", "content-language", "content-location", "content-type"]);

/** Maximum bytes of all request headers: the limit of common servers. */
const headerLimit = 32 * 1024;

export type Headers = readonly (readonly [name: string, value: string])[];

/** Default headers of a request, as in undici's fetch. */
const usual: Headers = [
  ["accept", "*/*"],
  ["accept-language", "*"],
  ["user-agent", `watchfire/${version}`],
];

/**
 * Checks a guest's headers, and returns them as WHATWG fetch sends them: names in lower case, values of one name combined,
 * surrounding white space removed. Throws a FetchError for an invalid header, or one that a handler may not set.
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

/** Returns the headers to send: the handler's, and the defaults that it did not set. */
export function sentHeaders(headers: Headers): Headers {
  const set = new Set(headers.map(([name]) => name));
  return [...headers, ...usual.filter(([name]) => !set.has(name))];
}

/** Returns the headers to send to a redirect's target. */
export function redirectedHeaders(headers: Headers, sameOrigin: boolean, keepsBody: boolean): Headers {
  return headers.filter(([name]) => (sameOrigin || !personal.has(name)) && (keepsBody || !ofBody.has(name)));
}

/** Headers of the connection on which a response arrived. */
const ofConnection = ["connection", "keep-alive", "transfer-encoding"];
/** Headers of an encoded body. */
const ofCoding = ["content-encoding", "content-length"];

/** Returns a response's headers as pairs, without those that no longer apply to the complete and, if so, decoded body. */
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
