import type { ChangeType } from "../../../runtime/manifest/function.ts";
import { revisionBump } from "../branching-history.ts";
import type { Dice } from "../random.ts";

/** One state of an object, or its deletion, as etcd keeps it. */
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
  /** Whether the object carries the label `on=true`. */
  readonly on: boolean;
}

export const keyOf = ({ namespace, name }: Pick<Revision, "namespace" | "name">): string => `${namespace}/${name}`;

export const namespaces = ["red", "green", "blue"];
const names = ["a", "b", "c"];

/** A cluster's data: the oracle that every law is held against. */
export class Cluster {
  log: Revision[] = [];
  /** The data of Secrets, which nobody watches. */
  readonly secrets = new Map<string, { resourceVersion: string; data: Record<string, string> }>();
  /** Changes up to here can no longer be watched. */
  compacted = 0;
  /** Whether the kind ConfigMap is there; as of a custom resource, it may be installed later. */
  served = true;
  /** A deletion is shown at the resourceVersion of the state before, as APIs do that are not etcd's. */
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

  /** The next resourceVersion, for what is written outside of the log. */
  next(): number {
    return ++this.rv;
  }

  /** A ConfigMap comes, changes, goes, or goes and comes back; now and then a namespace's label changes. */
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
   * It is restored from a backup that was made at some time since the last compaction: what came after is gone. `bumps`: it goes on
   * with newer resourceVersions than all that it gave. Returns the newest of the backup.
   */
  restore(bumps: boolean): number {
    const backup = Math.max(this.compacted, 20, this.rv - this.dice.below(15));
    this.log = this.log.filter(({ rv }) => rv <= backup);
    this.rv = bumps ? this.rv + revisionBump : backup;
    this.compacted = this.rv;
    return backup;
  }

  /** Live objects of a kind by key, as they are, or as they were at a resourceVersion. */
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
