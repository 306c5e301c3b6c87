import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import type { ChangeType } from "../../runtime/manifest/function.ts";
import type { Dice } from "./random.ts";

/** One state of an object, or its deletion. */
export interface State {
  readonly rv: number;
  readonly type: ChangeType;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly a: number;
}

export const keyOf = ({ namespace, name }: Pick<State, "namespace" | "name">): string => `${namespace}/${name}`;

/** "0" is no resourceVersion. */
const first = 10;

/** Offset after a restore with newer revisions, beyond all that were given before. */
export const revisionBump = 1_000;

/**
 * A cluster that may be reset to an earlier state, which removes the later changes. Its resourceVersions are then given again, or
 * continue far beyond the earlier ones.
 */
export class BranchingHistory {
  log: State[] = [];
  /** Changes up to here can no longer be watched. */
  compacted = 0;
  private rv = first;
  private uids = 0;

  get now(): number {
    return this.rv;
  }

  change(dice: Dice, namespaces: readonly string[], names: readonly string[]): void {
    const [namespace, name] = [dice.pick(namespaces), dice.pick(names)];
    const was = this.here().get(keyOf({ namespace, name }));
    this.rv += 1 + dice.below(3);
    const { rv } = this;
    const uid = was?.uid ?? `u${++this.uids}`;
    const type = was === undefined ? "Added" : dice.chance(0.25) ? "Deleted" : "Modified";
    // A deletion shows the previous state.
    const a = type === "Deleted" ? (was?.a ?? 0) : dice.below(100);
    this.log.push({ rv, type, namespace, name, uid, a });
  }

  /**
   * Restores the cluster from a backup that was made at some time since the last compaction. `bumps`: with newer revisions.
   */
  rewind(dice: Dice, bumps: boolean): void {
    const backup = Math.max(this.compacted, first, this.rv - dice.below(15));
    this.log = this.log.filter(({ rv }) => rv <= backup);
    this.rv = bumps ? this.rv + revisionBump : backup;
    this.compacted = this.rv;
  }

  /** The current objects. */
  here(): Map<string, State> {
    const here = new Map<string, State>();
    for (const state of this.log) {
      if (state.type === "Deleted") here.delete(keyOf(state));
      else here.set(keyOf(state), state);
    }
    return here;
  }
}

/** The state in the form of a watch or a list. */
export function changeOf({ rv, type, namespace, name, uid, a }: State): Change {
  const meta = { namespace, name, uid, resourceVersion: resourceVersion(String(rv)) };
  const body = Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: meta, spec: { a } }));
  return { type, meta, body, receivedAt: 0 };
}
