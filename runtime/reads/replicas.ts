import type { Clock } from "../base/clock.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { Informers, Watch } from "../informer/informers.ts";
import type { ReplicaReader, SourceCache } from "./source-cache.ts";

/** A reader's place at a replica. */
export interface Seat {
  readonly replica: SourceCache;
  /** As `sourceKey` names the source. */
  readonly key: string;
  /** Has the API server asked for a list, which is newer than all that was said before this call. */
  refresh(): void;
  /** Leaves; the last to leave ends the replica. */
  leave(): void;
}

interface ReplicasParts {
  readonly watches: Pick<Informers, "subscribe">;
  readonly clock: Clock;
  /** Makes what keeps a source's objects, or counts them. */
  readonly make: (spec: SourceSpec, key: string) => SourceCache;
}

interface Shared {
  readonly replica: SourceCache;
  watch: Watch;
  refreshedAt: number;
}

/** Milliseconds between two lists of one replica that somebody asked for. */
const refreshMs = 5_000;

/** The replicas of functions, or the sizes that are counted for them: who reads the same source shares one. */
export class Replicas {
  private readonly parts: ReplicasParts;
  private readonly all = new Map<string, Shared>();

  constructor(parts: ReplicasParts) {
    this.parts = parts;
  }

  /** What all of them take, in bytes. */
  get bytes(): number {
    let bytes = 0;
    for (const { replica } of this.all.values()) bytes += replica.bytes;
    return bytes;
  }

  /** What the objects of one source take, in bytes; undefined where nobody reads it, or it has not listed. */
  sizeOf(key: string): number | undefined {
    const replica = this.all.get(key)?.replica;
    return replica?.objects && replica.bytes;
  }

  /** Every replica that somebody reads. */
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

  /** It joins its source anew, as one that has nothing, and keeps its objects until that list is whole. */
  private refresh(spec: SourceSpec, shared: Shared): void {
    const { watches, clock } = this.parts;
    const now = clock.monotonic();
    if (now - shared.refreshedAt < refreshMs) return;
    shared.refreshedAt = now;
    void shared.watch.close();
    shared.watch = watches.subscribe(spec, shared.replica);
  }
}
