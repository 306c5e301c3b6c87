import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import type { ChangeType } from "../../runtime/manifest/function.ts";
import type { Dice } from "./random.ts";

/** One state of an object, or its deletion. */
export interface Revision {
  readonly rv: number;
  readonly type: ChangeType;
  readonly name: string;
  readonly uid: string;
  /** The field that a filter on `.spec.a` compares. */
  readonly a: number;
  readonly b: number;
}

export const namespace = "team-a";

/** The true history of the cluster, which deliveries are checked against. */
export class History {
  private readonly all: Revision[] = [];
  /** Changes up to here can no longer be watched. */
  compacted = 0;
  private rv = 10;
  private uids = 0;
  private readonly alive = new Map<string, Revision>();

  get now(): number {
    return this.rv;
  }

  get log(): readonly Revision[] {
    return this.all;
  }

  /** The part of the history with objects of some names. */
  part(has: (name: string) => boolean): History {
    return new Part(this, has);
  }

  /** Makes a random change. */
  change(dice: Dice, names: readonly string[]): void {
    const name = dice.pick(names);
    const was = this.alive.get(name);
    if (!was) this.write(dice, { type: "Added", name, uid: `u${++this.uids}`, a: dice.below(3), b: dice.below(9) });
    else if (dice.chance(0.25)) {
      this.write(dice, { ...was, type: "Deleted" });
      if (dice.chance(0.4)) this.write(dice, { ...was, type: "Added", uid: `u${++this.uids}` });
    } else {
      const a = dice.chance(0.5) ? was.a + 1 : was.a;
      this.write(dice, { ...was, type: "Modified", a, b: was.b + 1 });
    }
  }

  /** The live objects, now or at a revision. */
  at(rv: number): Map<string, Revision> {
    const state = new Map<string, Revision>();
    for (const revision of this.log) {
      if (revision.rv > rv) break;
      if (revision.type === "Deleted") state.delete(revision.name);
      else state.set(revision.name, revision);
    }
    return state;
  }

  after(rv: number): Revision[] {
    return this.log.filter((revision) => revision.rv > rv);
  }

  find(rv: string): Revision | undefined {
    return this.log.find((revision) => String(revision.rv) === rv);
  }

  private write(dice: Dice, revision: Omit<Revision, "rv">): void {
    this.rv += 1 + dice.below(3);
    const written = { ...revision, rv: this.rv };
    this.all.push(written);
    if (written.type === "Deleted") this.alive.delete(written.name);
    else this.alive.set(written.name, written);
  }
}

class Part extends History {
  private readonly whole: History;
  private readonly has: (name: string) => boolean;

  constructor(whole: History, has: (name: string) => boolean) {
    super();
    this.whole = whole;
    this.has = has;
  }

  override get log(): readonly Revision[] {
    return this.whole.log.filter(({ name }) => this.has(name));
  }

  override get now(): number {
    return this.whole.now;
  }
}

/** The revision in the form of a watch. */
export function changeOf({ rv, type, name, uid, a, b }: Revision): Change {
  const meta = { namespace, name, uid, resourceVersion: resourceVersion(String(rv)) };
  const body = Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: meta, spec: { a, b } }));
  return { type, meta, body, receivedAt: 0 };
}
