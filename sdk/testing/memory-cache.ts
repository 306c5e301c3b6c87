import type { Cache, CacheQuery } from "../cache.ts";
import { ForbiddenError, InvalidError } from "../errors.ts";
import type { Ref } from "../kube.ts";
import type { UnknownObject } from "../object.ts";
import type { MemoryCluster } from "./memory-cluster.ts";
import { matchesFields, matchesLabels } from "./selectors.ts";

/** One entry of a manifest's `reads`, unchanged. */
export interface DeclaredRead {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespaceSelector?: LabelSelector & { readonly matchNames?: readonly string[] };
  readonly labelSelector?: LabelSelector;
  readonly fieldSelector?: string;
  readonly object?: "Full" | "Metadata";
  readonly indexes?: readonly { readonly name: string; readonly field: string }[];
}

interface LabelSelector {
  /** An undefined value is absent: TypeScript adds one for the keys of an array's other items. */
  readonly matchLabels?: Readonly<Record<string, string | undefined>>;
  readonly matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
}

/** Returns `ctx.cache` for a unit test: the cluster's present objects, as far as the reads select them. */
export function memoryCache(cluster: MemoryCluster, reads: readonly DeclaredRead[]): Cache {
  const declared = ({ apiVersion, kind }: Pick<Ref, "apiVersion" | "kind">, namespace?: string): DeclaredRead => {
    const read = reads.find((each) => each.apiVersion === apiVersion && each.kind === kind);
    if (!read) throw refused(`the reads do not keep ${apiVersion} ${kind}: give them as \`reads\``);
    const { matchNames } = read.namespaceSelector ?? {};
    if (matchNames && namespace !== undefined && !matchNames.includes(namespace))
      throw refused(`the reads keep ${apiVersion} ${kind} of other namespaces than ${namespace}`);
    return read;
  };
  const kept = (read: DeclaredRead): UnknownObject[] => {
    const { objects } = cluster;
    const isKept = (object: UnknownObject) =>
      object.apiVersion === read.apiVersion &&
      object.kind === read.kind &&
      meets(read.labelSelector, object.metadata?.labels) &&
      matchesFields(read.fieldSelector ?? "", object) &&
      isChosen(read, object.metadata?.namespace ?? "", objects);
    return objects.filter(isKept).map((object) => (read.object === "Metadata" ? metadataOf(object) : object));
  };
  const age = () => ({ resourceVersion: cluster.resourceVersion, ageMs: 0 });
  const cache = {
    get: (ref: Ref) =>
      kept(declared(ref, ref.namespace ?? "")).find(
        ({ metadata }) => metadata?.name === ref.name && (metadata?.namespace ?? "") === (ref.namespace ?? ""),
      ),
    list: ({ namespace, labelSelector = "", index = {}, ...kind }: CacheQuery) => {
      const read = declared(kind, namespace);
      const [asked, ...more] = Object.entries(index);
      if (more.length > 0) throw new InvalidError("cache.list: index names more than one index", { status: 400 });
      const field = read.indexes?.find(({ name }) => name === asked?.[0])?.field;
      if (asked && field === undefined)
        throw refused(`the reads have no index ${asked[0]} of ${kind.apiVersion} ${kind.kind}`);
      const items = kept(read).filter(
        (object) =>
          (namespace === undefined || object.metadata?.namespace === namespace) &&
          matchesLabels(labelSelector, object.metadata?.labels ?? {}) &&
          (!asked || field === undefined || valuesAt(object, field).has(asked[1])),
      );
      return { items, ...age() };
    },
    age: (kind: Pick<Ref, "apiVersion" | "kind">) => {
      declared(kind);
      return age();
    },
  };
  return cache as Cache;
}

const refused = (message: string): ForbiddenError =>
  new ForbiddenError(`WF_READS_UNDECLARED: ${message}`, { status: 403, reason: "Forbidden", refusedBy: "runtime" });

const metadataOf = ({ apiVersion, kind, metadata }: UnknownObject): UnknownObject => ({ apiVersion, kind, metadata });

function isChosen({ namespaceSelector }: DeclaredRead, namespace: string, objects: readonly UnknownObject[]): boolean {
  if (!namespaceSelector) return true;
  if (namespaceSelector.matchNames) return namespaceSelector.matchNames.includes(namespace);
  const found = objects.find(({ kind, metadata }) => kind === "Namespace" && metadata?.name === namespace);
  return found !== undefined && meets(namespaceSelector, found.metadata?.labels);
}

function meets(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector = {},
  labels: Readonly<Record<string, string>> = {},
) {
  const holds = ({ key, operator, values = [] }: { key: string; operator: string; values?: readonly string[] }) => {
    const value = labels[key];
    if (operator === "Exists" || operator === "DoesNotExist") return (value !== undefined) === (operator === "Exists");
    return (value !== undefined && values.includes(value)) === (operator === "In");
  };
  const isLabelled = Object.entries(matchLabels).every(([key, value]) => value === undefined || labels[key] === value);
  return isLabelled && matchExpressions.every(holds);
}

/** Values by which an index finds one object, as in the runtime. */
const mostValues = 1000;

/** Returns the texts, numbers and booleans at a field's path, or in the list there; `[*]` leads into a list's items. */
function valuesAt(object: unknown, path: string): ReadonlySet<string> {
  let values: unknown[] = [object];
  for (const [step, plain, double, single] of path.matchAll(/\.([\w$-]+)|\["([^"]+)"\]|\['([^']+)'\]|\[\*\]/g)) {
    const name = plain ?? double ?? single ?? "";
    values = values.flatMap((value) => {
      if (step === "[*]") return Array.isArray(value) ? value : [];
      return Array.isArray(value) ? [] : [(value as Record<string, unknown> | null | undefined)?.[name]];
    });
  }
  const found = values
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter((each) => ["string", "number", "boolean"].includes(typeof each));
  const distinct = new Set(found.map(String));
  if (distinct.size > mostValues)
    throw new InvalidError(`WF_READS_INDEX: an object has more than ${mostValues} values at ${path}`, { status: 400 });
  return distinct;
}
