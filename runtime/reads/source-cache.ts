import type { ResourceVersion } from "../base/resource-version.ts";
import type { Subscriber } from "../informer/fanout/subscriber.ts";
import type { ObjectMeta } from "../informer/scan/change.ts";
import type { Objects } from "./objects.ts";

/** A reader of a source's cache. Callbacks are synchronous, and may leave the cache. */
export interface ReplicaReader {
  /** Called when it takes more memory than before. */
  grown(): void;
  /** Called when it advanced: a list is complete, or a change or bookmark arrived. */
  moved(): void;
}

/** The properties of an event with which a cache's age is compared. */
export interface EventMoment {
  readonly resourceVersion: ResourceVersion;
  /** Set if the object was deleted, and not only left out by a selector. */
  readonly deleted?: Pick<ObjectMeta, "namespace" | "name" | "uid"> | undefined;
  /** When the wait for it began, by the monotonic clock. */
  readonly since: number;
  /** Whether it arrived before its trigger learned of a rewind of the cluster's state, or before its selection changed. */
  readonly past?: boolean | undefined;
}

/** The objects of one source, or only their size. */
export interface SourceCache extends Subscriber {
  readonly readers: Set<ReplicaReader>;
  /** `undefined` before the first complete list. */
  readonly objects: Objects | undefined;
  /** The resourceVersion of the objects; `undefined` before the first list, and for a kind that is not installed. */
  readonly at: ResourceVersion | undefined;
  /** Milliseconds since the API server last sent anything. Up to then it is certain that nothing else has changed. */
  readonly ageMs: number | undefined;
  /** Bytes that the objects take, including what a running list adds. */
  readonly bytes: number;
  /** Indexes a field from now on. */
  index(path: readonly string[]): void;
  /** Whether it is not older than the given moment. */
  covers(moment: EventMoment): boolean;
}
