import { byAge, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";
import { type Change, objectKey } from "../../informer/scan/change.ts";
import { apart } from "../../v8/own-copy.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";

/** A difference between what was known and a list. */
export type Difference =
  /** `unknown`: nothing was known by its key. */
  | { readonly type: "Added"; readonly key: string; readonly change: Change; readonly unknown: boolean }
  | { readonly type: "Modified"; readonly key: string; readonly change: Change }
  /** `before` bounds the deletion: it came before this resourceVersion of the object that took the name; or by the list's own. */
  | {
      readonly type: "Deleted";
      readonly key: string;
      readonly known: LastState;
      readonly before: ResourceVersion | undefined;
    };

/** Which of two states of one object counts: the newer, or after a rewind whichever the list shows. */
type DiffMode = "newer" | "different";

interface GapDiffParts {
  /** The live object known by a key; what is told meanwhile is known. */
  readonly lookup: (key: string) => LastState | undefined;
  readonly mode: DiffMode;
  /** Whether the list is believed to be of the same cluster from its first item on. */
  readonly believed: boolean;
  /** Bodies that may wait for the list's end, in bytes; all whom it is for share them. */
  readonly heldLimit: number;
  /** Whether an object that was not known is told at once. */
  readonly tellsUnknown: boolean;
  /** Takes the differences that cannot wait for the list's end. */
  readonly tell: (difference: Difference) => void;
}

/** What a complete list says beside what was told as it was read. */
export interface UnreadObjects {
  /** Deleted first, then by resourceVersion. */
  readonly found: readonly Difference[];
  /** How many objects were known before it, and how many of them are deleted, told or not. */
  readonly known: number;
  readonly deleted: number;
  /** Some of what waited was let go of: another list is needed to tell of it. */
  readonly lacks: boolean;
}

/**
 * Finds what happened in a gap, by comparing a list with what was known before it. Items stream in; one that is
 * unchanged is let go at once, others wait for the list's end. Where they are too large for that, they are told as they
 * come from there on, so that no list is ever held whole. Each is a state that the object had, whatever becomes of the
 * list. Unless none of the objects was known, as in the list of another cluster: such a list is let go of beyond its
 * first part. Deletions follow from a complete list alone: half a list would be read as deletions.
 */
export class GapDiff {
  private readonly parts: GapDiffParts;
  private believed: boolean;
  private streams = false;
  /** Objects of the list whose names were known, and those of them that are others by now. */
  private met = 0;
  private replaced = 0;
  private readonly seen = new Set<string>();
  private held: Difference[] = [];
  private heldBytes = 0;
  private lacks = false;

  constructor(parts: GapDiffParts) {
    this.parts = parts;
    this.believed = parts.believed;
  }

  /** Takes an item; one listed twice, as a restarted page may, counts once. */
  item(change: Change): void {
    const key = objectKey(change.meta);
    if (this.seen.has(key)) return;
    this.seen.add(key);
    const known = this.parts.lookup(key);
    if (known) this.met++;
    if (known && known.uid !== change.meta.uid) this.replaced++;
    // No other cluster has an object of its uid.
    else if (known) this.believed = true;
    const atOnce = this.streams || (!known && this.parts.tellsUnknown);
    for (const difference of this.compare(key, known, change)) {
      if (atOnce) this.parts.tell(difference);
      else this.hold(difference);
    }
    if (this.heldBytes > this.parts.heldLimit) this.makeRoom();
  }

  /** The list is complete. `known` are all the objects known by now. */
  end(known: Iterable<readonly [string, LastState]>): UnreadObjects {
    const deletions: Difference[] = [];
    const others: Exclude<Difference, { readonly type: "Deleted" }>[] = [];
    for (const each of this.held) {
      if (each.type === "Deleted") deletions.push(each);
      else others.push(each);
    }
    const replaced = deletions.length;
    for (const [key, object] of known) {
      if (!this.seen.has(key)) deletions.push({ type: "Deleted", key, known: object, before: undefined });
    }
    const gone = deletions.length - replaced;
    // A sort keeps the list's order where resourceVersions cannot be compared.
    others.sort((a, b) => byAge(a.change.meta.resourceVersion, b.change.meta.resourceVersion));
    const found = [...deletions, ...others];
    return { found, known: this.met + gone, deleted: this.replaced + gone, lacks: this.lacks };
  }

  private compare(key: string, known: LastState | undefined, change: Change): readonly Difference[] {
    const { uid, resourceVersion } = change.meta;
    const added = { type: "Added", key, change, unknown: known === undefined } as const;
    if (!known) return [added];
    if (known.uid !== uid) return [{ type: "Deleted", key, known, before: resourceVersion }, added];
    if (known.begun === "Added" || known.begun === "Deleted") return [added];
    return this.changed(known, resourceVersion) ? [{ type: "Modified", key, change }] : [];
  }

  private hold(difference: Difference): void {
    if (difference.type === "Deleted") {
      this.held.push(difference);
      return;
    }
    const body = apart(difference.change.body);
    this.heldBytes += body.length;
    this.held.push({ ...difference, change: { ...difference.change, body } });
  }

  /** What waits is told from now on, or forgotten where the list is not believed yet. */
  private makeRoom(): void {
    const { held } = this;
    this.held = [];
    this.heldBytes = 0;
    this.streams = this.believed;
    if (this.streams) for (const difference of held) this.parts.tell(difference);
    else this.lacks = true;
  }

  /**
   * A list older than what is known, as a lagging server gives, changes nothing; versions without order differ or not.
   * After a rewind what is known is told again where a later state may have run.
   */
  private changed({ resourceVersion, begun }: LastState, listed: ResourceVersion): boolean {
    if (this.parts.mode === "different") return listed !== resourceVersion || begun !== undefined;
    return !isUpTo(listed, resourceVersion);
  }
}
