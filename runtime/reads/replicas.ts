import type { Clock } from "../base/clock.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { Informers, Watch } from "../informer/informers.ts";
import type { ReplicaReader, SourceCache } from "./source-cache.ts";

/** A reader's membership of a replica. */
export interface Seat {
  readonly replica: SourceCache;
  /** The source's key. */
  readonly key: string;
  /** Requests a list, which is newer than everything the API server sent before this call. */
  refresh(): void;
  /** Leaves. The replica ends when its last reader leaves. */
  leave(): void;
}

interface ReplicasParts {
  readonly watches: Pick<Informers, "subscribe">;
  readonly clock: Clock;
  /** Creates a cache of a source's objects, or a counter of them. */
  readonly make: (spec: SourceSpec, key: string) => SourceCache;
}

interface Shared {
  readonly replica: SourceCache;
  watch: Watch;
  refreshedAt: number;
}

/** Minimum milliseconds between two requested lists of one replica. */
const refreshMs = 5_000;

/** The replicas of functions, or the counters of their sizes. Readers of the same source share one. */
export class Replicas {
  private readonly parts: ReplicasParts;
  private readonly all = new Map<string, Shared>();

  constructor(parts: ReplicasParts) {
    this.parts = parts;
  }

  /** Bytes that all of them take. */
  get bytes(): number {
    let bytes = 0;
    for (const { replica } of this.all.values()) bytes += replica.bytes;
    return bytes;
  }

  /** Returns the bytes of one source's objects, or `undefined` if it has no reader or no complete list. */
  sizeOf(key: string): number | undefined {
    const replica = this.all.get(key)?.replica;
    return replica?.objects && replica.bytes;
  }

  /** Returns every replica that has a reader. */
  *list(): Iterable<SourceCache> {
    for (const { replica } of this.all.values()) yield replica;
  }

  /** @param fields paths to index */
  join(spec: SourceSpec, fields: readonly (readonly string[])[], reader: ReplicaReader): Seat {
    const key = sourceKey(spec);
    const shared = this.all.get(key) ?? this.begin(key, spec);
    const { replica } = shared;
    for (const path of fields) replica.index(path);
    replica.readers.add(reader);
    return {
      key,
      replica,
      refresh: () => this.refresh(spec, shared),
      leave: () => {
        replica.readers.delete(reader);
        if (replica.readers.size > 0 || this.all.get(key) !== shared) return;
        this.all.delete(key);
        void shared.watch.close();
      },
    };
  }

  private begin(key: string, spec: SourceSpec): Shared {
    const { watches, make } = this.parts;
    const replica = make(spec, key);
    const shared = { replica, watch: watches.subscribe(spec, replica), refreshedAt: Number.NEGATIVE_INFINITY };
    this.all.set(key, shared);
    return shared;
  }

  /** Subscribes again without a resume version, which causes a list. Its objects stay until that list is complete. */
  private refresh(spec: SourceSpec, shared: Shared): void {
    const { watches, clock } = this.parts;
    const now = clock.monotonic();
    if (now - shared.refreshedAt < refreshMs) return;
    shared.refreshedAt = now;
    void shared.watch.close();
    shared.watch = watches.subscribe(spec, shared.replica);
  }
}
