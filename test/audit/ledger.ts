import type { Client } from "../target/client.ts";

/** One change in the cluster's own history. */
export interface Fact {
  readonly uid: string;
  readonly name: string;
  readonly type: "Added" | "Modified" | "Deleted";
  /** For a Deleted, the resourceVersion of the deletion. */
  readonly resourceVersion: number;
}

/** One delivery as the handler recorded it. */
export interface Delivery {
  readonly id: string;
  readonly uid: string;
  readonly name: string;
  readonly type: Fact["type"];
  /** The resourceVersion in the event. */
  readonly resourceVersion: number;
  /** True if the delivery was marked as a possible repetition: by `redelivered`, or by an attempt above the first. */
  readonly flagged: boolean;
  readonly synthetic: boolean;
  /** The reason in the event. */
  readonly reason?: string;
  /** Its position in the order of records: in a cluster, a revision. */
  readonly writtenAt: number;
}

/** A place where deliveries are recorded. */
export interface Records {
  /** The number of recorded deliveries. */
  written(): Promise<number>;
  /** All deliveries, in the order of their records. */
  deliveries(): Promise<Delivery[]>;
}

/** Records that handlers write into the cluster. */
export const recordsIn = (client: Client, where = namespaces): Records => ({
  written: () => written(client, where),
  deliveries: () => readDeliveries(client, where),
});

/** The namespaces of the objects that the writer changes, and of the deliveries that the handler records. */
export interface Namespaces {
  readonly objects: string;
  /** The objects' namespace with the suffix `-records`, where the handler writes. */
  readonly records: string;
}

export const namespacesOf = (objects: string): Namespaces => ({ objects, records: `${objects}-records` });

/** The namespaces in the manifest of the function `recorder`. */
export const namespaces = namespacesOf("audit");
/** The ConfigMap that the cluster creates in every namespace; the recorder ignores it, too. */
const foreign = "kube-root-ca.crt";

const types = { ADDED: "Added", MODIFIED: "Modified", DELETED: "Deleted" } as const;

/** Every change after a resourceVersion that the cluster's history still contains. */
export async function readFacts(client: Client, after: number, { objects } = namespaces): Promise<Fact[]> {
  const path = `/api/v1/namespaces/${objects}/configmaps`;
  // The server ends the watch after a second, and until then has sent everything.
  using watch = await client.watch(path, { resourceVersion: after, timeoutSeconds: 1 });
  if (watch.refusal) throw new Error(`the cluster refuses its history after ${after}: ${watch.refusal.message}`);
  return (await watch.untilEnd()).flatMap(({ type, object }) => {
    if (type === "ERROR") throw new Error(`the history after ${after} is gone: ${object.message}`);
    const { uid, name, resourceVersion } = object.metadata;
    if (type === "BOOKMARK" || name === foreign) return [];
    return [{ uid, name, type: types[type], resourceVersion: Number(resourceVersion) }];
  });
}

/** All deliveries that the handler has recorded so far, in order. */
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

/** The number of recorded deliveries. */
export async function written(client: Client, { records } = namespaces): Promise<number> {
  const page = await client.get(`/api/v1/namespaces/${records}/configmaps`, { limit: 1 });
  return page.items.length + Number(page.metadata.remainingItemCount ?? 0);
}

/** The cluster's current revision. */
export async function revision(client: Client): Promise<number> {
  const page = await client.get(`/api/v1/namespaces/${namespaces.objects}/configmaps`, { limit: 1 });
  return Number(page.metadata.resourceVersion);
}
