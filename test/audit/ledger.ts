import type { Client } from "../target/client.ts";

/** One change as the cluster's own history has it. */
export interface Fact {
  readonly uid: string;
  readonly name: string;
  readonly type: "Added" | "Modified" | "Deleted";
  /** For a Deleted, the resourceVersion of the deletion. */
  readonly resourceVersion: number;
}

/** One delivery as the handler wrote it down. */
export interface Delivery {
  readonly id: string;
  readonly uid: string;
  readonly name: string;
  readonly type: Fact["type"];
  /** As the event gave it. */
  readonly resourceVersion: number;
  /** It said of itself that an earlier delivery may have run: by `redelivered`, or by an attempt above the first. */
  readonly flagged: boolean;
  readonly synthetic: boolean;
  /** As the event gave it. */
  readonly reason?: string;
  /** Its place in that order: in a cluster, a revision. */
  readonly writtenAt: number;
}

/** A place where deliveries are recorded. */
export interface Records {
  /** How many are. */
  written(): Promise<number>;
  /** All of them, in the order they were written. */
  deliveries(): Promise<Delivery[]>;
}

/** Those that handlers write into the cluster. */
export const recordsIn = (client: Client, where = namespaces): Records => ({
  written: () => written(client, where),
  deliveries: () => readDeliveries(client, where),
});

/** The namespaces of the objects that the writer changes, and of the deliveries that the handler records. */
export interface Namespaces {
  readonly objects: string;
  /** The objects' namespace with `-records` after it, which is where the handler looks for it. */
  readonly records: string;
}

export const namespacesOf = (objects: string): Namespaces => ({ objects, records: `${objects}-records` });

/** Those that the manifest of the function `recorder` names. */
export const namespaces = namespacesOf("audit");
/** The cluster's own ConfigMap in every namespace; the recorder leaves it out as well. */
const foreign = "kube-root-ca.crt";

const types = { ADDED: "Added", MODIFIED: "Modified", DELETED: "Deleted" } as const;

/** Every change after a resourceVersion, from the history that the cluster still has. */
export async function readFacts(client: Client, after: number, { objects } = namespaces): Promise<Fact[]> {
  const path = `/api/v1/namespaces/${objects}/configmaps`;
  // The server ends the watch after a second: until then it has sent all that there is.
  using watch = await client.watch(path, { resourceVersion: after, timeoutSeconds: 1 });
  if (watch.refusal) throw new Error(`the cluster refuses its history after ${after}: ${watch.refusal.message}`);
  return (await watch.untilEnd()).flatMap(({ type, object }) => {
    if (type === "ERROR") throw new Error(`the history after ${after} is gone: ${object.message}`);
    const { uid, name, resourceVersion } = object.metadata;
    if (type === "BOOKMARK" || name === foreign) return [];
    return [{ uid, name, type: types[type], resourceVersion: Number(resourceVersion) }];
  });
}

/** Everything the handler has written so far, in the order it was written. */
export async function readDeliveries(client: Client, { records } = namespaces): Promise<Delivery[]> {
  const deliveries: Delivery[] = [];
  let next: string | undefined;
  do {
    const path = `/api/v1/namespaces/${records}/configmaps`;
    const page = await client.get(path, { limit: 500, continue: next });
    for (const { metadata, data } of page.items) {
      if (metadata.name === foreign) continue;
      deliveries.push({
        id: data.id,
        uid: data.uid,
        name: data.name,
        type: data.type,
        resourceVersion: Number(data.resourceVersion),
        flagged: data.redelivered === "true" || Number(data.attempt) > 1,
        synthetic: data.synthetic === "true",
        reason: data.reason,
        writtenAt: Number(metadata.resourceVersion),
      });
    }
    next = page.metadata.continue;
  } while (next);
  return deliveries.sort((a, b) => a.writtenAt - b.writtenAt);
}

/** How many deliveries are written down. */
export async function written(client: Client, { records } = namespaces): Promise<number> {
  const page = await client.get(`/api/v1/namespaces/${records}/configmaps`, { limit: 1 });
  return page.items.length + Number(page.metadata.remainingItemCount ?? 0);
}

/** The cluster's revision now. */
export async function revision(client: Client): Promise<number> {
  const page = await client.get(`/api/v1/namespaces/${namespaces.objects}/configmaps`, { limit: 1 });
  return Number(page.metadata.resourceVersion);
}
