import { goText } from "../go-text.ts";
import { isObject, type Json, type JsonObject, jsonEqual } from "../json.ts";
import { PatchError } from "./patch-error.ts";

/** Rules for merging a list of objects. */
interface MergeRules {
  /** The field that identifies an item. */
  readonly key: string;
  /** The order in `$setElementOrder`. */
  readonly order: readonly Json[] | undefined;
  readonly merge: (left: JsonObject, right: JsonObject) => JsonObject;
  /** Prepares an item that is added. */
  readonly fresh: (item: JsonObject) => JsonObject;
}

/** Merges a list of objects by their key. An item may be marked `$patch: delete`, the list `$patch: replace`. */
export function mergeByKey(
  old: readonly Json[],
  patch: readonly Json[],
  { key, order, merge, fresh }: MergeRules,
): Json[] {
  const items: JsonObject[] = [];
  const deleted: Json[] = [];
  let replace = false;
  for (const item of patch) {
    if (!isObject(item)) throw new PatchError(500, `expected a map in the list, got ${goText(item)}`);
    const directive = item.$patch;
    if (directive === undefined) items.push(item);
    else if (directive === "delete") deleted.push(keyOf(item, key));
    else if (directive === "replace") replace = true;
    else if (directive === "merge") throw new PatchError(500, "merging lists cannot yet be specified in the patch");
    else throw new PatchError(500, `unknown patch type: ${goText(directive)} in map: ${goText(item)}`);
  }
  if (replace) return items.map(fresh);
  const left = old.filter((item) => !(isObject(item) && deleted.includes(item[key] ?? null)));
  for (const item of items) {
    const value = keyOf(item, key);
    const at = left.findIndex((other) => isObject(other) && other[key] === value);
    const match = left[at];
    if (isObject(match)) left[at] = merge(match, item);
    else left.push(fresh(item));
  }
  const identity = (item: Json): Json => (isObject(item) ? (item[key] ?? null) : null);
  return arrange(left, old, order ?? items, identity);
}

/** Merges two lists of scalars, without duplicates. */
export function mergePrimitives(old: readonly Json[], patch: readonly Json[], order?: readonly Json[]): Json[] {
  return arrange([...new Set([...old, ...patch])], old, order ?? patch, (item) => item);
}

/** Throws unless the patch's items appear in the order of `$setElementOrder`. */
export function checkOrder(patch: readonly Json[], order: readonly Json[], key: string | undefined): void {
  const identity = (item: Json): Json => (key !== undefined && isObject(item) ? (item[key] ?? null) : item);
  const listed = patch.filter((item) => !(isObject(item) && item.$patch !== undefined));
  let next = 0;
  for (const item of order) {
    const wanted = listed[next];
    if (wanted !== undefined && jsonEqual(identity(wanted), identity(item))) next++;
  }
  if (next < listed.length) {
    const texts = `${goText(listed)}\n doesn't match $setElementOrder list:\n${goText([...order])}`;
    throw new PatchError(500, `The order in patch list:\n${texts}\n`);
  }
}

/**
 * Returns the items that the patch names, in its order, and between them those that it does not name. An item of the latter kind
 * precedes the first named item that follows it in the old list.
 */
function arrange(
  items: readonly Json[],
  old: readonly Json[],
  order: readonly Json[],
  identity: (item: Json) => Json,
): Json[] {
  const rank = (list: readonly Json[], item: Json): number =>
    list.findIndex((other) => jsonEqual(identity(other), identity(item)));
  const named = items.filter((item) => rank(order, item) >= 0).sort((a, b) => rank(order, a) - rank(order, b));
  const others = items.filter((item) => rank(order, item) < 0).sort((a, b) => rank(old, a) - rank(old, b));
  const arranged: Json[] = [];
  for (const item of named) {
    const place = rank(old, item);
    while (place >= 0 && others[0] !== undefined && rank(old, others[0]) < place) arranged.push(others.shift() ?? null);
    arranged.push(item);
  }
  return [...arranged, ...others];
}

function keyOf(item: JsonObject, key: string): Json {
  const value = item[key];
  if (value !== undefined) return value;
  throw new PatchError(500, `map: ${goText(item)} does not contain declared merge key: ${key}`);
}
