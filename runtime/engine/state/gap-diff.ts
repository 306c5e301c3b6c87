import { byAge, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";
import { type Change, objectKey } from "../../informer/scan/change.ts";
import { apart } from "../../v8/own-copy.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";

/** A difference between the known objects and a list. */
export type Difference =
  /** `unknown` is true if no object was known by the key. */
  | { readonly type: "Added"; readonly key: string; readonly change: Change; readonly unknown: boolean }
  | { readonly type: "Modified"; readonly key: string; readonly change: Change }
  /**
   * `before` is an upper bound for the deletion: the resourceVersion of the object that took the name. If undefined, the list's
   * own is the bound.
   */
  | {
      readonly type: "Deleted";
      readonly key: string;
      readonly known: LastState;
      readonly before: ResourceVersion | undefined;
    };

/** Which of two states of an object wins: the newer one, or, after a rewind, the one that the list shows. */
type DiffMode = "newer" | "different";

interface GapDiffParts {
  /** Returns the live object known by a key, including what was delivered while the list was read. */
  readonly lookup: (key: string) => LastState | undefined;
  readonly mode: DiffMode;
  /** Whether the list is trusted to be of the same cluster from its first item on. */
  readonly believed: boolean;
  /** Limit for bodies that wait for the list's end, in bytes, shared by all subscribers of the list. */
  readonly heldLimit: number;
  /** Whether an object that was not known is delivered at once. */
  readonly deliversUnknown: boolean;
  /** Receives the differences that cannot wait for the list's end. */
  readonly deliver: (difference: Difference) => void;
}

/** The differences of a complete list that were not delivered while it was read. */
export interface UnreadObjects {
  /** Deletions first, then the others by resourceVersion. */
  readonly found: readonly Difference[];
  /** The number of objects known before the list, and how many of them it deletes, whether delivered already or not. */
  readonly known: number;
  readonly deleted: number;
  /** True if differences were dropped for lack of room, so that another list is needed. */
  readonly lacks: boolean;
}

/**
 * Finds what happened in a gap by comparing a list with the objects known before it. Items stream in. An unchanged item is
 * dropped at once; a difference waits for the list's end.
 *
 * If the waiting bodies exceed the limit, differences are delivered from there on as they are found, so that no list is ever held
 * whole. That is safe because each is a state that the object had, whatever happens to the list. The exception is a list in which
 * no known object was found, as a list of another cluster would be: beyond the limit its differences are dropped.
 *
 * Deletions are derived from a complete list alone: half a list would look like deletions.
 */
export class GapDiff {
  private readonly parts: GapDiffParts;
  private believed: boolean;
  private streams = false;
  /** Counts of listed objects whose names were known, and of those among them that have another uid now. */
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

  /** Adds an item. An object that is listed twice, as a restarted page may do, counts once. */
  item(change: Change): void {
    const key = objectKey(change.meta);
    if (this.seen.has(key)) return;
    this.seen.add(key);
    const known = this.parts.lookup(key);
    if (known) this.met++;
    if (known && known.uid !== change.meta.uid) this.replaced++;
    // Uids are unique across clusters, so the list is of the same cluster.
    else if (known) this.believed = true;
    const atOnce = this.streams || (!known && this.parts.deliversUnknown);
    for (const difference of this.compare(key, known, change)) {
      if (atOnce) this.parts.deliver(difference);
      else this.hold(difference);
    }
    if (this.heldBytes > this.parts.heldLimit) this.makeRoom();
  }

  /** Ends a complete list. `known` are all objects known by now. */
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
    // The sort is stable: it keeps the list's order where resourceVersions cannot be compared.
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

  /** Delivers the waiting differences and all later ones, or drops them if the list is not trusted yet. */
  private makeRoom(): void {
    const { held } = this;
    this.held = [];
    this.heldBytes = 0;
    this.streams = this.believed;
    if (this.streams) for (const difference of held) this.parts.deliver(difference);
    else this.lacks = true;
  }

  /**
   * Whether a listed state differs from the known one. A list older than the known state, as a lagging server sends, changes
   * nothing. Versions that cannot be ordered differ unless they are equal. After a rewind a known object is delivered again if a
   * later state may have reached a handler.
   */
  private changed({ resourceVersion, begun }: LastState, listed: ResourceVersion): boolean {
    if (this.parts.mode === "different") return listed !== resourceVersion || begun !== undefined;
    return !isUpTo(listed, resourceVersion);
  }
}
