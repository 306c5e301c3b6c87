import { z } from "zod";
import type { KubeTransport } from "../../kube/transport.ts";
import { foundSchema } from "../api-objects.ts";
import { revisionName } from "../names.ts";
import { type Revision, readRevision } from "./revision.ts";

/** Time limit of a request for a record, in milliseconds. */
const timeoutMs = 10_000;

/** Most records that are kept in memory: one for each set. */
const mostKept = 500;

const listSchema = z.looseObject({ items: z.array(foundSchema).max(1) });

/** The records of the revisions that are deployed in one namespace. Each is read once. */
export class RevisionRecords {
  /** The runtime's own connection, which may list ConfigMaps. */
  private readonly transport: KubeTransport;
  private readonly place: { readonly namespace: string; readonly account: string };
  private readonly kept = new Map<string, { readonly number: number; readonly record: Revision | undefined }>();

  constructor(transport: KubeTransport, place: { readonly namespace: string; readonly account: string }) {
    this.transport = transport;
    this.place = place;
  }

  /** Returns the record if it was read before. */
  known(set: string, number: number | undefined): Revision | undefined {
    const kept = this.kept.get(set);
    return kept?.number === number ? kept?.record : undefined;
  }

  /** Returns the record; `undefined` if it does not exist or cannot be understood. Rejects if it cannot be read. */
  async read(set: string, number: number | undefined): Promise<Revision | undefined> {
    if (number === undefined) return undefined;
    if (this.kept.get(set)?.number === number) return this.known(set, number);
    const { namespace, account } = this.place;
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const query = { fieldSelector: `metadata.name=${revisionName(account, set, number)}`, limit: "1" };
    const list = listSchema.parse(await this.transport.json<unknown>({ method: "GET", path, query, timeoutMs }));
    const [found] = list.items;
    const record = found && readRevision({ ...found, kind: "ConfigMap" }, { namespace, account, set });
    const [oldest] = this.kept.keys();
    if (this.kept.size >= mostKept && oldest !== undefined) this.kept.delete(oldest);
    this.kept.set(set, { number, record });
    return record;
  }
}
