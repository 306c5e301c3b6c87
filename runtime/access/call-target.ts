import type { ArgumentsOf, OperationName } from "./arguments.ts";

/** The parts of checked arguments that name what is called. */
interface NamingArguments {
  readonly ref?: NamedObject;
  readonly object?: NamedObject & { readonly metadata?: NamedObject };
  readonly kind?: string;
  readonly namespace?: string;
  readonly url?: string;
  readonly method?: string;
  readonly key?: string;
  readonly prefix?: string;
}

interface NamedObject {
  readonly kind?: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** Maximum characters of a target: a kind, a namespace and a name. */
const mostCharacters = 400;

/**
 * Describes what a call is about, for the list of a run's calls: `ConfigMap team-a/settings`, `ConfigMap team-a` for a list, `GET hooks.example.com`, or the key
 * of an entry of the state, the prefix of keys with `*`. A URL's path and query are left out, because they often hold credentials.
 */
export function describeTarget<Name extends OperationName>(operation: Name, args: ArgumentsOf<Name>): string {
  return targetOf(operation, args as NamingArguments).slice(0, mostCharacters);
}

function targetOf(operation: OperationName, args: NamingArguments): string {
  const { ref, object, kind, namespace, url, method = "GET", key, prefix } = args;
  if (operation === "fetch") return `${method} ${URL.parse(url ?? "")?.host ?? ""}`;
  if (key !== undefined) return key;
  if (prefix !== undefined) return `${prefix}*`;
  const named = ref ?? (object && { kind: object.kind, ...(object.metadata ?? object) }) ?? { kind, namespace };
  const place = [named.namespace, named.name].filter((part) => part !== undefined && part !== "");
  return [object?.kind ?? named.kind ?? "", place.join("/")].filter(Boolean).join(" ");
}
