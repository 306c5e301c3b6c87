import type { KnownIdentity } from "../checkpoint/batch.ts";
import type { Filter, Verdict } from "../filter/filter.ts";
import type { ChangeType, Trigger } from "../manifest/function.ts";
import type { ObjectMeta } from "../watch/change.ts";
import type { KnownObject } from "../watch/diff.ts";
import { compareResourceVersions } from "../watch/resource-version.ts";
import type { Commits } from "./commits.ts";

/** Where an object will stand when all that waits for it is done. */
export interface Standing extends KnownObject {
  readonly deleted: boolean;
}

/** What a view needs of an event. */
export interface ViewEvent {
  readonly type: ChangeType;
  readonly key: string;
  readonly meta: ObjectMeta;
  /** A Deleted that was found, not watched. */
  readonly lastKnown: boolean;
  /** Its own resourceVersion; of a Deleted that was found, the newest that it may have: nothing up to there is news. */
  readonly deletedBy: string;
  /** After a Deleted nothing is kept of the key: no source of it is left that could replay. */
  readonly forget: boolean;
}

/** How much of a body a view keeps. */
export type KeptBody = "Full" | "Metadata" | "None";

export interface ViewParts {
  readonly id: number;
  readonly functionName: string;
  readonly trigger: Trigger;
  readonly resource: string;
  readonly filter: Filter;
  readonly kept: KeptBody;
  readonly commits: Commits;
}

/**
 * What one trigger knows of its objects: exactly what its handler has been told, or was spared by a filter. It changes
 * when an event leaves its lane, in the commit that makes the event terminal; what still waits lies over it, so that a
 * later event, or a list after a gap, is compared with where the object will stand.
 */
export class View {
  readonly id: number;
  readonly functionName: string;
  readonly trigger: Trigger;
  readonly resource: string;
  private readonly known = new Map<string, KnownIdentity>();
  private readonly suspected = new Map<string, KnownObject>();
  /** Deleted objects by the namespace of their source ("" for all), in the order in which they went. */
  private readonly graves = new Map<string, { readonly key: string; readonly resourceVersion: string }[]>();
  private readonly waiting = new Map<string, Standing & { count: number }>();
  private readonly filter: Filter;
  private readonly kept: KeptBody;
  private readonly commits: Commits;

  constructor({ id, functionName, trigger, resource, filter, kept, commits }: ViewParts) {
    this.id = id;
    this.functionName = functionName;
    this.trigger = trigger;
    this.resource = resource;
    this.filter = filter;
    this.kept = kept;
    this.commits = commits;
  }

  /** Takes what the store has. */
  restore(key: string, identity: KnownIdentity): void {
    this.known.set(key, identity);
    if (identity.deleted) this.bury(key, identity.resourceVersion);
  }

  /** An attempt at this object's state had begun when the last process ended: a handler may know of it. */
  suspect(key: string, uid: string, resourceVersion: string): void {
    if (this.known.get(key)?.uid !== uid) this.suspected.set(key, { uid, resourceVersion, unfinished: true });
  }

  /** The object as a list is compared with: where it will stand, unless it will be gone. */
  alive(key: string): KnownObject | undefined {
    const standing = this.standing(key);
    return standing && !standing.deleted ? standing : this.suspected.get(key);
  }

  standing(key: string): Standing | undefined {
    return this.waiting.get(key) ?? this.known.get(key);
  }

  /** Objects that will stand when all that waits is done, of one namespace or ("") of all. */
  *live(namespace: string): Iterable<readonly [string, KnownObject]> {
    const prefix = namespace === "" ? "" : `${namespace}/`;
    for (const [key, object] of this.waiting) {
      if (!object.deleted && key.startsWith(prefix)) yield [key, object];
    }
    for (const [key, object] of this.known) {
      if (!object.deleted && !this.waiting.has(key) && key.startsWith(prefix)) yield [key, object];
    }
    for (const [key, object] of this.suspected) {
      if (this.alive(key) === object && key.startsWith(prefix)) yield [key, object];
    }
  }

  /** The newest resourceVersion of all that is known, deletions included, of one namespace or ("") of all. */
  newest(namespace: string): string | undefined {
    const prefix = namespace === "" ? "" : `${namespace}/`;
    let newest: string | undefined;
    for (const [key, { resourceVersion }] of this.known) {
      if (!key.startsWith(prefix)) continue;
      if (newest === undefined || (compareResourceVersions(resourceVersion, newest) ?? 0) > 0) newest = resourceVersion;
    }
    return newest;
  }

  isIdle(key: string): boolean {
    return !this.waiting.has(key);
  }

  /** Whether a verdict can be had without reading from the store. */
  get judgesAtOnce(): boolean {
    return !this.filter.needsOldBody;
  }

  /** Notes that an event waits. */
  expect(key: string, uid: string, resourceVersion: string, deleted: boolean): void {
    if (this.suspected.get(key)?.uid === uid) this.suspected.delete(key);
    const count = (this.waiting.get(key)?.count ?? 0) + 1;
    this.waiting.set(key, { uid, resourceVersion, deleted, count });
  }

  /** An event that waited does so no more. */
  leave(key: string): void {
    const waiting = this.waiting.get(key);
    if (!waiting) return;
    waiting.count--;
    if (waiting.count === 0) this.waiting.delete(key);
  }

  /** The filter's verdict on an event that is next for its object. */
  async judge(event: ViewEvent, body: Buffer): Promise<Verdict> {
    const old = this.filter.needsOldBody && event.type !== "Added" ? await this.body(event.key) : undefined;
    return this.judgeWith(event, body, old);
  }

  /** A body that cannot be judged is delivered: losing an event is worse. */
  judgeWith(event: Pick<ViewEvent, "type" | "key" | "lastKnown">, body: Buffer, oldBody?: Buffer): Verdict {
    const known = this.known.get(event.key);
    const { hash, matched } = known && !known.deleted ? known : unknown;
    try {
      return this.filter.judge(event.type, body, { hash, matched }, oldBody, event.lastKnown);
    } catch {
      return { deliver: true, hash: "", matched: true };
    }
  }

  /** The event is terminal: what it says is known from the next commit on. */
  apply(event: ViewEvent, body: Buffer, { hash, matched }: Verdict): void {
    if (this.suspected.get(event.key)?.uid === event.meta.uid) this.suspected.delete(event.key);
    if (event.type !== "Deleted") {
      this.put(event.key, event.meta.uid, event.meta.resourceVersion, body, hash, matched);
      return;
    }
    if (event.forget) {
      this.forget(event.key);
      return;
    }
    const tombstone = {
      uid: event.meta.uid,
      resourceVersion: event.deletedBy,
      hash: "",
      deleted: true,
      matched: false,
    };
    this.known.set(event.key, tombstone);
    this.bury(event.key, event.deletedBy);
    this.commits.putKnown(this.id, event.key, { ...tombstone, body: undefined });
  }

  /** Learns of an object without an event. */
  record(key: string, uid: string, resourceVersion: string, body: Buffer): void {
    const { hash, matched } = this.judgeWith({ type: "Added", key, lastKnown: false }, body);
    this.put(key, uid, resourceVersion, body, hash, matched);
  }

  /** Lets go of the tombstones of a source's namespace that no replay from its low-water mark can reach; of all without one. */
  exhume(namespace: string, lowWaterMark?: string): void {
    const graves = this.graves.get(namespace);
    if (!graves) return;
    const reachable = graves.findIndex(
      ({ resourceVersion }) =>
        lowWaterMark !== undefined && (compareResourceVersions(resourceVersion, lowWaterMark) ?? 1) > 0,
    );
    for (const { key, resourceVersion } of graves.splice(0, reachable < 0 ? graves.length : reachable)) {
      const known = this.known.get(key);
      if (known?.deleted && known.resourceVersion === resourceVersion) this.forget(key);
    }
    if (graves.length === 0) this.graves.delete(namespace);
  }

  /** The object as a deletion that was found shows it: its last body, or its name where none is kept. */
  async lastBody({ key, meta }: Pick<ViewEvent, "key" | "meta">): Promise<Buffer> {
    const { apiVersion, kind } = this.trigger;
    return (await this.body(key)) ?? Buffer.from(JSON.stringify({ apiVersion, kind, metadata: meta }));
  }

  /** The object's last body that was terminal. */
  async body(key: string): Promise<Buffer | undefined> {
    if (this.kept === "None") return undefined;
    return this.commits.body(this.id, key);
  }

  private bury(key: string, resourceVersion: string): void {
    const namespace = this.trigger.namespaces.type === "all" ? "" : key.slice(0, key.indexOf("/"));
    const graves = this.graves.get(namespace);
    if (graves) graves.push({ key, resourceVersion });
    else this.graves.set(namespace, [{ key, resourceVersion }]);
  }

  private forget(key: string): void {
    this.known.delete(key);
    this.commits.putKnown(this.id, key, undefined);
  }

  private put(key: string, uid: string, resourceVersion: string, body: Buffer, hash: string, matched: boolean): void {
    this.known.set(key, { uid, resourceVersion, hash, deleted: false, matched });
    const kept = this.kept === "Full" ? body : this.kept === "Metadata" ? metadataOf(body) : undefined;
    this.commits.putKnown(this.id, key, { uid, resourceVersion, hash, deleted: false, matched, body: kept });
  }
}

/** What a filter is told of an object that was not known. */
const unknown = { hash: undefined, matched: undefined };

function metadataOf(body: Buffer): Buffer {
  const { apiVersion, kind, metadata } = JSON.parse(body.toString());
  return Buffer.from(JSON.stringify({ apiVersion, kind, metadata }));
}
