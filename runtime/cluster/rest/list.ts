import { matchesLabels } from "../api/label-selector.ts";
import { ApiError, badRequest, expired } from "../api/status.ts";
import type { ResourceType } from "../kinds/resource-type.ts";
import type { Collection } from "../storage/collection.ts";
import { decodeContinue, encodeContinue } from "../storage/continue-token.ts";
import type { Revision } from "../storage/revision.ts";
import type { Store } from "../storage/store.ts";
import { matchesFields } from "./field-selector.ts";
import type { ListOptions } from "./list-options.ts";

/** How long a read waits for a future revision, in milliseconds (`blockTimeout` of cacher/watch_cache.go). */
const freshnessTimeoutMs = 3000;

/** One page of a list. */
interface Page {
  items: Revision[];
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
}

/** The objects of a list at one revision. */
interface Snapshot {
  revision: number;
  exact: boolean;
  start: string;
}

/** Lists a resource in a namespace ("" for all) with the given options. */
export async function list(store: Store, type: ResourceType, namespace: string, options: ListOptions): Promise<Page> {
  const collection = store.collection(type.storage);
  const snapshot = await snapshotOf(store, collection, options);
  const prefix = namespace === "" ? "" : `${namespace}/`;
  const limit = options.resourceVersion === 0 && options.continue === "" ? 0 : options.limit;
  const source = snapshot.exact
    ? collection.past(snapshot.revision, prefix, snapshot.start)
    : collection.current(prefix, snapshot.start);
  const selective = options.labels.length > 0 || options.fields.length > 0;
  const items: Revision[] = [];
  const metadata: Page["metadata"] = { resourceVersion: String(snapshot.revision) };
  let remaining = 0;
  for (const [key, entry] of source) {
    if (!selected(entry, options)) continue;
    if (limit === 0 || items.length < limit) {
      items.push(entry);
      continue;
    }
    if (remaining === 0) metadata.continue = encodeContinue({ revision: snapshot.revision, start: key });
    remaining++;
    if (selective) break;
  }
  if (remaining > 0 && !selective) metadata.remainingItemCount = remaining;
  return { items, metadata };
}

/** True if an object satisfies both selectors. */
export function selected(entry: Revision, { labels, fields }: Pick<ListOptions, "labels" | "fields">): boolean {
  return matchesLabels(labels, entry.object.metadata.labels) && matchesFields(fields, entry.object);
}

async function snapshotOf(store: Store, collection: Collection, options: ListOptions): Promise<Snapshot> {
  if (options.continue !== "") return continued(store, collection, options);
  const asked = options.resourceVersion ?? 0;
  if (asked > 0) await fresh(store, asked);
  // A revision with a limit and without a match is read as exact: the rule from before resourceVersionMatch existed.
  const exact = asked > 0 && (options.match === "Exact" || (options.match === undefined && options.limit > 0));
  if (!exact) return { revision: store.revision, exact: false, start: "" };
  if (asked < collection.compacted) throw expired(`The resourceVersion for the provided list is too old.`);
  return { revision: asked, exact: true, start: "" };
}

function continued(store: Store, collection: Collection, options: ListOptions): Snapshot {
  if (options.resourceVersion !== undefined && options.resourceVersion !== 0)
    throw badRequest("specifying resource version is not allowed when using continue");
  const { revision, start } = decodeContinue(options.continue);
  if (revision === -1) return { revision: store.revision, exact: false, start };
  if (revision < collection.compacted || revision > store.revision)
    throw expired(continueExpired, encodeContinue({ revision: -1, start }));
  return { revision, exact: true, start };
}

const continueExpired =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/** Waits until the store has reached a revision. Throws a 504 after 3 seconds. */
export async function fresh(store: Store, revision: number): Promise<void> {
  if (await store.reached(revision, freshnessTimeoutMs)) return;
  throw new ApiError(504, "Timeout", `Timeout: Too large resource version: ${revision}, current: ${store.revision}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}
