import type { Environment } from "@marcbachmann/cel-js";
import { addLists } from "./cel-lists.ts";
import { Quantity } from "./quantity.ts";

/** A URL as CEL's `url()` makes one. */
class Url {
  readonly parsed: URL;
  constructor(text: string) {
    this.parsed = new URL(text.startsWith("/") ? `k8s:${text}` : text);
  }
}

/**
 * Adds the functions that Kubernetes adds to CEL and that rules of custom resources use: on strings, lists, regular
 * expressions, quantities and URLs. Not there: `ip`, `cidr`, `semver`, `format`, `sets`, `math`.
 */
export function addKubernetesLibrary(environment: Environment): Environment {
  addStrings(environment);
  addLists(environment);
  addQuantities(environment);
  addUrls(environment);
  return environment;
}

function addStrings(environment: Environment): void {
  environment
    .registerFunction("string.find(string): string", (text: string, re: string) => new RegExp(re).exec(text)?.[0] ?? "")
    .registerFunction("string.findAll(string): list<string>", (text: string, re: string) => findAll(text, re))
    .registerFunction("string.findAll(string, int): list<string>", (text: string, re: string, limit: bigint) =>
      findAll(text, re).slice(0, limit < 0n ? undefined : Number(limit)),
    )
    .registerFunction("string.charAt(int): string", (text: string, at: bigint) => text.charAt(Number(at)))
    .registerFunction("string.replace(string, string): string", (text: string, from: string, to: string) =>
      text.replaceAll(from, () => to),
    );
}

function findAll(text: string, pattern: string): string[] {
  return [...text.matchAll(new RegExp(pattern, "g"))].map(([match]) => match);
}

function addQuantities(environment: Environment): void {
  environment
    .registerType("kubernetes.Quantity", Quantity)
    .registerFunction("isQuantity(string): bool", (text: string) => Quantity.isQuantity(text))
    .registerFunction("quantity(string): kubernetes.Quantity", (text: string) => Quantity.parse(text))
    .registerFunction("kubernetes.Quantity.sign(): int", (q: Quantity) => BigInt(q.compareTo(Quantity.parse("0"))))
    .registerFunction("kubernetes.Quantity.isInteger(): bool", (q: Quantity) => q.isInteger)
    .registerFunction("kubernetes.Quantity.asInteger(): int", (q: Quantity) => q.asInteger())
    .registerFunction("kubernetes.Quantity.asApproximateFloat(): double", (q: Quantity) => q.asNumber());
  const compare = (name: string, holds: (order: number) => boolean): void => {
    environment.registerFunction(
      `kubernetes.Quantity.${name}(kubernetes.Quantity): bool`,
      (left: Quantity, right: Quantity) => holds(left.compareTo(right)),
    );
  };
  compare("isGreaterThan", (order) => order > 0);
  compare("isLessThan", (order) => order < 0);
  environment
    .registerFunction("kubernetes.Quantity.compareTo(kubernetes.Quantity): int", (left: Quantity, right: Quantity) =>
      BigInt(left.compareTo(right)),
    )
    .registerFunction(
      "kubernetes.Quantity.add(kubernetes.Quantity): kubernetes.Quantity",
      (left: Quantity, right: Quantity) => left.add(right, 1n),
    )
    .registerFunction(
      "kubernetes.Quantity.sub(kubernetes.Quantity): kubernetes.Quantity",
      (left: Quantity, right: Quantity) => left.add(right, -1n),
    );
}

function addUrls(environment: Environment): void {
  environment
    .registerType("kubernetes.URL", Url)
    .registerFunction("isURL(string): bool", (text: string) => URL.canParse(text) || text.startsWith("/"))
    .registerFunction("url(string): kubernetes.URL", (text: string) => new Url(text))
    .registerFunction("kubernetes.URL.getScheme(): string", ({ parsed }: Url) =>
      parsed.protocol === "k8s:" ? "" : parsed.protocol.slice(0, -1),
    )
    .registerFunction("kubernetes.URL.getHost(): string", ({ parsed }: Url) => parsed.host)
    .registerFunction("kubernetes.URL.getHostname(): string", ({ parsed }: Url) => parsed.hostname)
    .registerFunction("kubernetes.URL.getPort(): string", ({ parsed }: Url) => parsed.port)
    .registerFunction("kubernetes.URL.getEscapedPath(): string", ({ parsed }: Url) => parsed.pathname);
}
