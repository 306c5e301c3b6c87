import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import type { Value } from "./value.ts";

/** Longest URL, in characters; browsers take 2,000 to 80,000. */
const longest = 8192;

/** A URL as Go's ParseRequestURI takes one: absolute, or an absolute path. What follows `#` belongs to the path or query. */
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
    const [path = "", ...query] = rest.split("?");
    if (scheme === "" && !text.startsWith("/")) return undefined;
    if (path !== "" && !path.startsWith("/") && (authority !== undefined || query.length > 0 || path.startsWith("#")))
      return undefined;
    const host = (authority ?? "").replace(/^[\s\S]*@/, "");
    if (!/^(?:\[[0-9A-Fa-f:.]+(?:%25[^\]]*)?\]|[^[\]:\s<>"\\^`{|}]*)(?::\d*)?$/.test(host)) return undefined;
    if (/%(?![0-9A-Fa-f]{2})/.test(path + host)) return undefined;
    return new Url(scheme.toLowerCase(), host, path, query.join("?"));
  }

  get hostname(): string {
    return this.host.replace(/:\d*$/, "").replace(/^\[|\]$/g, "");
  }

  get port(): string {
    return /:(\d*)$/.exec(this.host)?.[1] ?? "";
  }

  get escapedPath(): string {
    return this.path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/%[\]]+/g, (part) =>
      encodeURIComponent(part.toWellFormed()),
    );
  }

  get parameters(): Map<Value, Value> {
    const found = new Map<Value, string[]>();
    for (const [key, value] of new URLSearchParams(this.query)) {
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

const read = (meter: Meter, text: string): Url | undefined => {
  meter.payText(Math.min(text.length, longest), 10);
  return Url.read(text);
};

/** Whether `url()` takes it. */
export const isUrl = (text: string): boolean => Url.read(text) !== undefined;

function parse(meter: Meter, text: string): Url {
  const url = read(meter, text);
  if (!url) throw new EvaluationError(`a text of ${text.length} characters is no absolute URL or path`);
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
    ["kubernetes.URL.getHost(): string", (_, { host }: Url) => host],
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
