import type { ResourceVersion } from "../base/resource-version.ts";
import type { Subscriber } from "../informer/fanout/subscriber.ts";
import type { ObjectMeta } from "../informer/scan/change.ts";
import type { Objects } from "./objects.ts";

/** Who reads from a source's cache. Calls are synchronous, and may leave it. */
export interface ReplicaReader {
  /** It takes more memory than before. */
  grown(): void;
  /** It has come further: a list is complete, or a change or bookmark came. */
  moved(): void;
}

/** An event, as far as a cache's age is compared with it. */
export interface EventMoment {
  readonly resourceVersion: ResourceVersion;
  /** The object is gone, for another reason than that a choice left it out. */
  readonly deleted?: Pick<ObjectMeta, "namespace" | "name" | "uid"> | undefined;
  /** When somebody began to wait for it, on the monotonic clock. */
  readonly since: number;
  /** It came before its trigger learned that the cluster's state went back, or before its selection changed. */
  readonly past?: boolean | undefined;
}

/** The objects of one source, or their size alone. */
export interface SourceCache extends Subscriber {
  readonly readers: Set<ReplicaReader>;
  /** Undefined before the first complete list. */
  readonly objects: Objects | undefined;
  /** The objects are those of this moment; undefined before the first list, and of a kind that is not installed. */
  readonly at: ResourceVersion | undefined;
  /** Milliseconds since the API server last said anything: that nothing else has changed until then is certain. */
  readonly ageMs: number | undefined;
  /** What the objects take, with what a list that is being read will add. */
  readonly bytes: number;
  /** Has a field indexed from now on. */
  index(path: readonly string[]): void;
  /** Whether it is no older than that. */
  covers(moment: EventMoment): boolean;
}
