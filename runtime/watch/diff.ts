import type { ChangeType } from "../manifest/function.ts";
import { byAge, isUpTo, type ResourceVersion } from "../resource-version.ts";
import type { Change } from "./change.ts";
import { apart, objectKey } from "./change.ts";

/** An object as its last event left it. */
export interface KnownObject {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /**
   * An event of it that may have run and is not done. Of an Added nothing else is known: it is still to be told of, but
   * its deletion must not be missed either.
   */
  readonly unfinished?: ChangeType;
}

/** A difference between what was known and a complete list. */
export type Difference =
  | { readonly type: "Added" | "Modified"; readonly key: string; readonly change: Change }
  /** `before` bounds the deletion: it came before this resourceVersion of the object that took the name; or by the list's own. */
  | {
      readonly type: "Deleted";
      readonly key: string;
      readonly known: KnownObject;
      readonly before: ResourceVersion | undefined;
    };

/** Which of two states of one object counts: the newer, or after a rewind whichever the list shows. */
export type DiffMode = "newer" | "different";

/** What a complete list says. */
export interface Differences {
  /** Deleted first, then by resourceVersion. */
  readonly found: readonly Difference[];
  /** How many objects were known before it, and how many of them are gone. */
  readonly known: number;
  readonly deleted: number;
}

/**
 * Finds what happened in a gap, by comparing a list with what was known before it. Items stream in; one that is
 * unchanged is let go at once, and of one that changed the body is copied out of the socket's chunk, which it would keep
 * alive. Nothing is given until the list is complete: half a list would be read as deletions.
 */
export class GapDiff {
  private readonly lookup: (key: string) => KnownObject | undefined;
  private readonly mode: DiffMode;
  private readonly unknown: ((key: string, change: Change) => void) | undefined;
  /** Objects of the list that were known. */
  private met = 0;
  private readonly seen = new Set<string>();
  private readonly found: { readonly change: Change; readonly difference: Difference }[] = [];
  private readonly replaced: Difference[] = [];

  /**
   * `lookup` gives the live object known by a key; what it knows changes by `unknown` alone until `end`. `unknown` takes
   * each object that was not known as it comes; without it they are among the differences.
   */
  constructor(
    lookup: (key: string) => KnownObject | undefined,
    mode: DiffMode = "newer",
    unknown?: (key: string, change: Change) => void,
  ) {
    this.lookup = lookup;
    this.mode = mode;
    this.unknown = unknown;
  }

  /** Takes an item; one listed twice, as a restarted page may, counts once. */
  item(change: Change): void {
    const key = objectKey(change.meta);
    if (this.seen.has(key)) return;
    this.seen.add(key);
    const known = this.lookup(key);
    if (!known && this.unknown) {
      this.unknown(key, change);
      return;
    }
    if (known) this.met++;
    if (known && known.uid !== change.meta.uid) {
      this.replaced.push({ type: "Deleted", key, known, before: change.meta.resourceVersion });
      this.add("Added", key, change);
    } else if (!known || known.unfinished === "Added" || known.unfinished === "Deleted") this.add("Added", key, change);
    else if (this.changed(known, change.meta.resourceVersion)) this.add("Modified", key, change);
  }

  /** The complete list's differences. `known` are all the objects known. */
  end(known: Iterable<readonly [string, KnownObject]>): Differences {
    const deleted = [...this.replaced];
    for (const [key, object] of known) {
      if (!this.seen.has(key)) deleted.push({ type: "Deleted", key, known: object, before: undefined });
    }
    const gone = deleted.length - this.replaced.length;
    // A sort keeps the list's order where resourceVersions cannot be compared.
    this.found.sort((a, b) => byAge(a.change.meta.resourceVersion, b.change.meta.resourceVersion));
    const found = [...deleted, ...this.found.map(({ difference }) => difference)];
    return { found, known: this.met + gone, deleted: deleted.length };
  }

  private add(type: Exclude<ChangeType, "Deleted">, key: string, given: Change): void {
    const change = { ...given, body: apart(given.body) };
    this.found.push({ change, difference: { type, key, change } });
  }

  /**
   * A list older than what is known, as a lagging server gives, changes nothing; versions without order differ or not.
   * After a rewind what is known is told again where a later state may have run.
   */
  private changed({ resourceVersion, unfinished }: KnownObject, listed: ResourceVersion): boolean {
    if (this.mode === "different") return listed !== resourceVersion || unfinished !== undefined;
    return !isUpTo(listed, resourceVersion);
  }
}

/** Fewer known objects than this are never held back: a small set is often emptied on purpose. */
const guardedSize = 100;

/** How long after a suspicious list a second one is asked for, in milliseconds: an empty cache that answered has filled by then. */
export const secondOpinionMs = 30_000;

/**
 * Guards against an answer of an empty cache or of another cluster: a list that would delete more than half of a large
 * known set is believed only when a second one, at least 30 s later, says so too.
 */
export class MassDeletionGuard {
  private suspectedAt: number | undefined;

  /** Whether this list's deletions are to be believed. `now` is monotonic, in milliseconds. */
  believes(deleted: number, known: number, now: number): boolean {
    if (known <= guardedSize || deleted * 2 <= known) {
      this.suspectedAt = undefined;
      return true;
    }
    this.suspectedAt ??= now;
    if (now - this.suspectedAt < secondOpinionMs) return false;
    this.suspectedAt = undefined;
    return true;
  }
}
