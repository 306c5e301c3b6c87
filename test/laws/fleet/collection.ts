import { type Cluster, keyOf, objectOf, type Revision } from "./cluster.ts";

/** A collection as one request selects it: a kind, optionally in one namespace, optionally with a selector. */
export class Collection {
  readonly kind: Revision["kind"];
  private readonly cluster: Cluster;
  private readonly namespace: string | undefined;
  private readonly onlyOn: boolean;
  private readonly nobody: boolean;

  constructor(cluster: Cluster, path: string, query: Readonly<Record<string, string | undefined>>) {
    this.cluster = cluster;
    this.kind = path.endsWith("/configmaps") ? "ConfigMap" : "Namespace";
    this.namespace = /\/namespaces\/([^/]+)\/configmaps$/.exec(path)?.[1];
    this.onlyOn = query.labelSelector === "on=true";
    this.nobody = query.fieldSelector !== undefined;
  }

  /** The objects in a list at this resourceVersion. */
  items(rv: number): object[] {
    return [...this.cluster.here(this.kind, rv).values()].filter((it) => this.shows(it)).map(objectOf);
  }

  /**
   * The lines that a watch sends after `after`, at most `limit` changes, and the resourceVersion that it reaches with them.
   */
  changes(after: number, limit: number): { readonly lines: object[]; readonly upTo: number } {
    const lines: object[] = [];
    let upTo = after;
    for (const revision of this.cluster.log) {
      if (revision.rv <= after || revision.kind !== this.kind) continue;
      const line = this.line(revision);
      if (!line) continue;
      if (lines.length === limit) return { lines, upTo };
      lines.push(line);
      upTo = revision.rv;
    }
    return { lines, upTo: this.cluster.now };
  }

  /**
   * An object that enters the selection is ADDED to it; one that leaves it is DELETED from it, in its previous state.
   */
  private line(revision: Revision): object | undefined {
    const was = this.cluster.before(revision);
    const before = was !== undefined && this.shows(was);
    const after = revision.type !== "Deleted" && this.shows(revision);
    if (!before && !after) return undefined;
    if (after) return { type: before ? "MODIFIED" : "ADDED", object: objectOf(revision) };
    const last = was ?? revision;
    const rv = this.cluster.deletesAsItWas && revision.type === "Deleted" ? last.rv : revision.rv;
    return { type: "DELETED", object: objectOf({ ...last, type: "Deleted", rv }) };
  }

  private shows(revision: Revision): boolean {
    if (this.nobody || (this.onlyOn && !revision.on)) return false;
    return this.namespace === undefined || keyOf(revision).startsWith(`${this.namespace}/`);
  }
}
