import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import type { Value } from "./value.ts";

/** Maximum length of a URL, in characters. Browsers accept 2,000 to 80,000. */
const longest = 8192;

/** Cost of parsing a URL, in addition to that of its characters. */
const reading = 100;

/** Valid percent escapes in a host. Go refuses those of ASCII characters. */
const hostEscapes = /^(?:[^%]|%(?:[89A-Fa-f][0-9A-Fa-f]|25))*$/;
/** A host in brackets, possibly with a zone, or a name; then a port. */
const hostSyntax = /^(?:\[[0-9A-Fa-f:.]+(?:%25[^\]]*)?\]|[^[\]:\s\\^`{|}/?#@]*)(?::\d*)?$/;
const userSyntax = /^(?:[A-Za-z0-9\-._:~!$&'()*+,;=@]|%[0-9A-Fa-f]{2})*$/;
const pathEscapes = /%(?![0-9A-Fa-f]{2})/;
/** A path without characters that need to be escaped. */
const escaped = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/[\]]|%[0-9A-Fa-f]{2})*$/;

/**
 * A URL as accepted by Go's ParseRequestURI: absolute, an absolute path, or `*`. The part after `#` is validated as part of the
 * path or query, as there, and then removed, as Kubernetes does.
 */
class Url {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;

  constructor(scheme: string, host: string, path: string, query: string) {
    this.scheme = scheme;
    this.host = host;
    this.path = path;
    this.query = query;
  }

  static read(text: string): Url | undefined {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses them
    if (text.length > longest || /[\x00-\x1f\x7f]/.test(text)) return undefined;
    const [, scheme = "", authority, rest = ""] =
      /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?]*))?([\s\S]*)$/.exec(text) ?? [];
    const [path = ""] = rest.split("?", 1);
    const relative = path !== "" && !path.startsWith("/");
    if (relative ? scheme === "" && text !== "*" : scheme === "" && !text.startsWith("/")) return undefined;
    if (relative && authority !== undefined) return undefined;
    const at = authority?.lastIndexOf("@") ?? -1;
    const [user, host] = [authority?.slice(0, Math.max(0, at)) ?? "", authority?.slice(at + 1) ?? ""];
    if (!userSyntax.test(user) || !hostSyntax.test(host) || !hostEscapes.test(host)) return undefined;
    if (!relative && pathEscapes.test(path)) return undefined;
    const [shown = ""] = rest.split("#", 1);
    const query = shown.indexOf("?");
    const own = query < 0 ? shown : shown.slice(0, query);
    return new Url(scheme.toLowerCase(), host, relative && scheme ? "" : own, query < 0 ? "" : shown.slice(query + 1));
  }

  /** The host with its port, decoded. */
  get authority(): string {
    return unescaped(this.host) ?? this.host;
  }

  get hostname(): string {
    return this.authority.replace(/:\d*$/, "").replace(/^\[|\]$/g, "");
  }

  get port(): string {
    return /:(\d*)$/.exec(this.host)?.[1] ?? "";
  }

  /** The path as written or, if it must be escaped, as Go escapes it. */
  get escapedPath(): string {
    if (this.path === "*" || escaped.test(this.path)) return this.path;
    return encodeURIComponent((unescaped(this.path) ?? "").toWellFormed())
      .replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
      .replace(/%(?:2F|3A|40|26|3D|2B|24|2C|3B)/g, decodeURIComponent);
  }

  /** The query's parameters, as in Go: pairs with a semicolon or an invalid escape are left out. */
  get parameters(): Map<Value, Value> {
    const found = new Map<Value, string[]>();
    for (const pair of this.query.split("&")) {
      const [, name = "", written = ""] = /^([^=]*)=?([\s\S]*)$/.exec(pair.replaceAll("+", " ")) ?? [];
      const [key, value] = [unescaped(name), unescaped(written)];
      if (pair === "" || pair.includes(";") || key === undefined || value === undefined) continue;
      const values = found.get(key) ?? [];
      values.push(value);
      found.set(key, values);
    }
    return found;
  }

  compareTo(other: unknown): number {
    return other instanceof Url && this.text === other.text ? 0 : Number.NaN;
  }

  private get text(): string {
    return JSON.stringify([this.scheme, this.host, this.path, this.query]);
  }
}

/** Returns `undefined` for an invalid escape. Bytes that are not UTF-8 become U+FFFD. */
function unescaped(text: string): string | undefined {
  if (!text.includes("%")) return text;
  if (pathEscapes.test(text)) return undefined;
  const parts = text.split(/((?:%[0-9A-Fa-f]{2})+)/);
  return parts
    .map((part, index) => (index % 2 ? Buffer.from(part.replaceAll("%", ""), "hex").toString() : part))
    .join("");
}

const read = (meter: Meter, text: string): Url | undefined => {
  meter.pay(reading);
  meter.payText(Math.min(text.length, longest), 20);
  return Url.read(text);
};

/** True if `url()` accepts the text. */
export const isUrl = (text: string): boolean => Url.read(text) !== undefined;

function parse(meter: Meter, text: string): Url {
  const url = read(meter, text);
  if (!url) throw new EvaluationError(`a text of ${text.length} characters is not an absolute URL or path`);
  return url;
}

function parameters(meter: Meter, url: Url): Value {
  meter.payText(url.query.length, 50);
  return url.parameters;
}

/** Kubernetes' functions on URLs. */
export const urls: Library = {
  types: [["kubernetes.URL", Url]],
  functions: [
    ["url(string): kubernetes.URL", parse],
    ["isURL(string): bool", (meter, text: string) => read(meter, text) !== undefined],
    ["kubernetes.URL.getScheme(): string", (_, { scheme }: Url) => scheme],
    ["kubernetes.URL.getHost(): string", (_, { authority }: Url) => authority],
    ["kubernetes.URL.getHostname(): string", (_, { hostname }: Url) => hostname],
    ["kubernetes.URL.getPort(): string", (_, { port }: Url) => port],
    [
      "kubernetes.URL.getEscapedPath(): string",
      (meter, url: Url) => {
        meter.payText(url.path.length, 10);
        return url.escapedPath;
      },
    ],
    ["kubernetes.URL.getQuery(): map<string, list<string>>", parameters],
  ],
};
