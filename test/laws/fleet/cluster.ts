import type { ChangeType } from "../../../runtime/manifest/function.ts";
import { revisionBump } from "../branching-history.ts";
import type { Dice } from "../random.ts";

/** One state of an object, or its deletion, as stored in etcd. */
export interface Revision {
  readonly rv: number;
  readonly type: ChangeType;
  readonly kind: "ConfigMap" | "Namespace";
  /** Empty for a Namespace. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The field that conditions and `changedFields` read. */
  readonly a: number;
  /** True if the object has the label `on=true`. */
  readonly on: boolean;
}

export const keyOf = ({ namespace, name }: Pick<Revision, "namespace" | "name">): string => `${namespace}/${name}`;

export const namespaces = ["red", "green", "blue"];
const names = ["a", "b", "c"];

/** A cluster's data: the reference for every law. */
export class Cluster {
  log: Revision[] = [];
  /** The data of Secrets, which no source watches. */
  readonly secrets = new Map<string, { resourceVersion: string; data: Record<string, string> }>();
  /** Changes up to here can no longer be watched. */
  compacted = 0;
  /** True if the kind ConfigMap is served; like a custom resource, it may be installed later. */
  served = true;
  /** True if a deletion has the resourceVersion of the previous state, as in APIs without etcd. */
  deletesAsItWas = false;
  private rv = 10;
  private uids = 0;
  private readonly dice: Dice;

  constructor(dice: Dice) {
    this.dice = dice;
    for (const name of namespaces) this.write({ ...fresh, kind: "Namespace", name, on: dice.chance(0.6) });
  }

  get now(): number {
    return this.rv;
  }

  /** The next resourceVersion, for a write outside of the log. */
  next(): number {
    return ++this.rv;
  }

  /** Creates, changes, deletes or recreates a ConfigMap; sometimes changes a namespace's label. */
  change(): void {
    const { dice } = this;
    if (dice.chance(0.06)) {
      const name = dice.pick(namespaces);
      const was = this.here("Namespace").get(keyOf({ namespace: "", name }));
      if (was) this.write({ ...was, type: "Modified", on: !was.on });
      return;
    }
    if (!this.served) return;
    const [namespace, name] = [dice.pick(namespaces), dice.pick(names)];
    const was = this.here("ConfigMap").get(keyOf({ namespace, name }));
    const born = { ...fresh, namespace, name, a: dice.below(4), on: dice.chance(0.7) };
    if (!was) this.write(born);
    else if (dice.chance(0.25)) {
      this.write({ ...was, type: "Deleted" });
      if (dice.chance(0.4)) this.write(born);
    } else {
      const a = dice.chance(0.6) ? dice.below(4) : was.a;
      this.write({ ...was, type: "Modified", a, on: dice.chance(0.15) ? !was.on : was.on });
    }
  }

  compact(): void {
    this.compacted = Math.max(this.compacted, this.rv - this.dice.below(4));
  }

  /**
   * Restores the cluster from a backup that was made at some time since the last compaction, without the later changes. `bumps`:
   * it continues with resourceVersions newer than all it gave. Returns the newest one of the backup.
   */
  restore(bumps: boolean): number {
    const backup = Math.max(this.compacted, 20, this.rv - this.dice.below(15));
    this.log = this.log.filter(({ rv }) => rv <= backup);
    this.rv = bumps ? this.rv + revisionBump : backup;
    this.compacted = this.rv;
    return backup;
  }

  /** Live objects of a kind by key, now or at a resourceVersion. */
  here(kind: Revision["kind"], rv = Number.POSITIVE_INFINITY): Map<string, Revision> {
    const here = new Map<string, Revision>();
    for (const revision of this.log) {
      if (revision.kind !== kind || revision.rv > rv) continue;
      if (revision.type === "Deleted") here.delete(keyOf(revision));
      else here.set(keyOf(revision), revision);
    }
    return here;
  }

  find(rv: string): Revision | undefined {
    return this.log.find((revision) => String(revision.rv) === rv);
  }

  /** The state before a revision; undefined where the object did not exist. */
  before({ kind, rv, namespace, name }: Revision): Revision | undefined {
    return this.here(kind, rv - 1).get(keyOf({ namespace, name }));
  }

  private write(revision: Omit<Revision, "rv">): void {
    const uid = revision.type === "Added" ? `u${++this.uids}` : revision.uid;
    this.rv += 1 + this.dice.below(3);
    this.log.push({ ...revision, uid, rv: this.rv });
  }
}

const fresh: Omit<Revision, "rv"> = {
  type: "Added",
  kind: "ConfigMap",
  namespace: "",
  name: "",
  uid: "",
  a: 0,
  on: true,
};

/** The object as the API server shows it. */
export function objectOf({ kind, rv, namespace, name, uid, a, on, type }: Revision): object {
  const deleted = type === "Deleted" && kind === "Namespace" ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {};
  const metadata = {
    name,
    ...(namespace !== "" && { namespace }),
    uid,
    resourceVersion: String(rv),
    labels: { on: String(on) },
    ...deleted,
  };
  return { apiVersion: "v1", kind, metadata, ...(kind === "ConfigMap" && { spec: { a } }) };
}
