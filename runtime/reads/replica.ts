import type { Clock } from "../base/clock.ts";
import { isNewer, isOrdered, isUpTo, newerOf, type ResourceVersion } from "../base/resource-version.ts";
import type { ListReason, ListReceiver } from "../informer/fanout/subscriber.ts";
import { MassDeletionGuard, RewindProof } from "../informer/list/diff.ts";
import type { Change, ObjectMeta } from "../informer/scan/change.ts";
import { type CachedObject, keep, Objects } from "./objects.ts";
import type { EventMoment, ReplicaReader, SourceCache } from "./source-cache.ts";

/** The objects of one source as the API server had them at one resourceVersion, which advances with the source's watch. */
export class Replica implements SourceCache {
  readonly id: string;
  readonly readers = new Set<ReplicaReader>();
  /** Nothing is kept over a restart. */
  readonly resumeFrom = undefined;
  /** Memory is bounded by the readers. */
  readonly congested = undefined;
  private readonly clock: Clock;
  /** Returns how often sources of its kind have found that the cluster's state was rewound (restored from a backup). */
  private readonly rewinds: () => number;
  private readonly guard = new MassDeletionGuard();
  private readonly fields: (readonly string[])[] = [];
  private current: Objects | undefined;
  private next: { readonly objects: Objects; bytes: number } | undefined;
  private position: ResourceVersion | undefined;
  /** The newest position before the cluster's state was rewound. */
  private before: ResourceVersion | undefined;
  /** The value of `rewinds` when the list began from which its objects come. */
  private listedAfter = 0;
  private listedAt: ResourceVersion | undefined;
  private listBegunAt = Number.NEGATIVE_INFINITY;
  private spokenAt: number | undefined;

  constructor(id: string, clock: Clock, rewinds: () => number) {
    this.id = id;
    this.clock = clock;
    this.rewinds = rewinds;
  }

  get objects(): Objects | undefined {
    return this.current;
  }

  get at(): ResourceVersion | undefined {
    return this.position;
  }

  get ageMs(): number | undefined {
    return this.spokenAt === undefined ? undefined : this.clock.monotonic() - this.spokenAt;
  }

  /** Bytes that it takes now, including what a running list adds. */
  get bytes(): number {
    return (this.current?.bytes ?? 0) + (this.next?.bytes ?? 0);
  }

  index(path: readonly string[]): void {
    if (this.fields.some((known) => known.join("\n") === path.join("\n"))) return;
    this.fields.push(path);
    this.current?.index(path);
    this.next?.objects.index(path);
  }

  /**
   * Whether it is not older than the given moment. Also true if resourceVersions are not ordered, because they cannot be
   * compared. Once any source of the kind has found that the cluster's state was rewound, only a list that began after that
   * counts.
   */
  covers({ resourceVersion, deleted, since, past }: EventMoment): boolean {
    if (this.listBegunAt > since || !isOrdered(resourceVersion)) return true;
    if (this.listedAfter !== this.rewinds()) return false;
    if (past && isReached(resourceVersion, this.before)) return true;
    const there = deleted && this.current?.get(deleted);
    if (there && there.meta.uid === deleted.uid && !isNewer(there.meta.resourceVersion, resourceVersion)) return false;
    return isReached(resourceVersion, this.position);
  }

  // The subscriber's callbacks.

  list(reason: ListReason): ListReceiver {
    const begunAt = this.clock.monotonic();
    const rewinds = this.rewinds();
    const proof = new RewindProof();
    const next = { objects: new Objects(this.fields), bytes: 0 };
    this.next = next;
    let stays = 0;
    return {
      item: (change) => {
        const known = this.current?.get(change.meta);
        const isSame =
          known?.meta.uid === change.meta.uid && known.meta.resourceVersion === change.meta.resourceVersion;
        const kept = isSame ? known : keep(change);
        if (rewinds === this.listedAfter) this.compare(known, change, proof);
        if (known) stays++;
        // Objects unchanged between both are in memory once.
        const { bytes } = next.objects;
        next.objects.put(kept);
        next.bytes += next.objects.bytes - bytes - (isSame ? kept.bytes : 0);
        for (const reader of [...this.readers]) reader.grown();
      },
      provesRewind: (version) => proof.holdsAt(version),
      end: (version) => {
        this.next = undefined;
        const known = this.current?.size ?? 0;
        const isBelieved =
          reason === "crd-removed" || this.guard.believes(known - stays, known, this.clock.monotonic());
        if (!isBelieved) return "held";
        this.current = next.objects;
        if (rewinds !== this.listedAfter && this.position) this.before = newerOf(this.before, this.position);
        this.listedAfter = rewinds;
        this.position = version;
        this.listedAt = version;
        this.listBegunAt = begunAt;
        this.moved();
        return "counted";
      },
      abort: () => {
        this.next = undefined;
      },
    };
  }

  change(change: Change): void {
    const { meta, type } = change;
    const { current } = this;
    if (!current) return;
    if (type === "Deleted") {
      const known = current.get(meta);
      if (known && !isNewer(known.meta.resourceVersion, meta.resourceVersion)) current.remove(meta);
    } else if (this.isNewTo(current, meta)) {
      current.put(keep(change));
      for (const reader of [...this.readers]) reader.grown();
    }
    this.advance(meta.resourceVersion);
  }

  /** A deletion may carry the resourceVersion of the object's last state. */
  isNews({ meta }: Change): boolean {
    const known = this.current?.get(meta);
    return known?.meta.uid === meta.uid && known.meta.resourceVersion === meta.resourceVersion;
  }

  bookmark(version: ResourceVersion): void {
    this.advance(version);
  }

  /** The kind has no objects. If it had, the list that follows the definition's removal reports their deletion. */
  kindIsMissing(): void {
    this.current ??= new Objects(this.fields);
    this.moved();
  }

  /** An object that it does not know did not exist at its position. */
  private compare(known: CachedObject | undefined, { meta }: Change, proof: RewindProof): void {
    const { uid, resourceVersion } = meta;
    if (known?.meta.uid === uid) proof.compare(known.meta.resourceVersion, resourceVersion);
    else if (this.position !== undefined && isUpTo(resourceVersion, this.position)) proof.add(this.position);
  }

  private isNewTo(objects: Objects, meta: ObjectMeta): boolean {
    const known = objects.get(meta)?.meta.resourceVersion ?? this.listedAt;
    return known === undefined || !isUpTo(meta.resourceVersion, known);
  }

  private advance(version: ResourceVersion): void {
    this.position = newerOf(this.position, version);
    this.moved();
  }

  private moved(): void {
    this.spokenAt = this.clock.monotonic();
    for (const reader of [...this.readers]) reader.moved();
  }
}

const isReached = (version: ResourceVersion, by: ResourceVersion | undefined): boolean =>
  by !== undefined && isUpTo(version, by);
