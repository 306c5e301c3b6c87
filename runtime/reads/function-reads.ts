import type { Timer } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { resourceVersion } from "../base/resource-version.ts";
import type { Delivery, Seen } from "../engine/delivery/delivery.ts";
import type { FunctionManifest, ReadIndex } from "../manifest/function.ts";
import type { CacheBudget, CacheMember } from "./cache-budget.ts";
import { ReadView, type ReadViewParts } from "./read-view.ts";
import type { Replicas } from "./replicas.ts";
import type { ReplicaReader } from "./source-cache.ts";

/** Milliseconds after which a function that exceeded its own limit is tried again. */
const retryMs = 300_000;

/** Dependencies of a function's reads. */
export interface FunctionReadsParts extends ReadViewParts {
  /** Bytes that the replicas of all functions may take. */
  readonly limit: number;
  readonly budget: Pick<CacheBudget, "enter" | "leave" | "grown" | "measured">;
  /** The counters of objects, which keep no bodies. */
  readonly sizes: Replicas;
  /** Called when it became ready or advanced, was suspended, or returned. */
  readonly changed: () => void;
  readonly refused: (fault: WatchfireError) => void;
}

/** State of one read, for the status. */
export interface ReadReport {
  readonly apiVersion: string;
  readonly kind: string;
  /** Source keys, as `sourceKey` returns them. */
  readonly sources: readonly string[];
  readonly ready: boolean;
  readonly objects: number;
  readonly bytes: number;
  /** Milliseconds since the API server last sent anything about it; absent before its first list. */
  readonly ageMs?: number | undefined;
}

/**
 * The objects that one function keeps in memory. While they exceed its own limit, or the budget of all functions suspends it, it
 * keeps no objects and its events wait.
 */
export class FunctionReads implements CacheMember {
  readonly manifest: FunctionManifest;
  private readonly parts: FunctionReadsParts;
  private views = new Map<string, ReadView>();
  /** Views that count objects. While there are any, no objects are kept. */
  private counting: readonly ReadView[] = [];
  private refusal: WatchfireError | undefined;
  private retry: Timer | undefined;
  /** The last known bytes by source. For sources that have listed since, `demand` is newer. */
  private known: ReadonlyMap<string, number> | undefined;
  /** Whether each source completed a list since it was joined. Namespaces may have been added after that. */
  private isWhole = false;
  /** Whether all its objects were counted since its last suspension. They may have become fewer since they were last read. */
  private isCounted = false;

  constructor(manifest: FunctionManifest, parts: FunctionReadsParts) {
    this.manifest = manifest;
    this.parts = parts;
    this.join();
  }

  /** Why its objects are not kept. */
  get fault(): WatchfireError | undefined {
    return this.refusal;
  }

  /** Whether the first list of each read is complete. */
  get isReady(): boolean {
    const isKept = !this.refusal && this.counting.length === 0;
    return isKept && [...this.views.values()].every(({ isReady }) => isReady);
  }

  /** Keys of the sources without a complete first list. */
  get behind(): readonly string[] {
    return [...this.views.values(), ...this.counting].flatMap(({ sources }) =>
      sources.filter(({ isReady }) => !isReady).map(({ key }) => key),
    );
  }

  get isMeasured(): boolean {
    return this.isCounted || this.isWhole;
  }

  /**
   * Bytes that its objects take or would take, by source. Until all are listed or counted, it is not below the last known value.
   */
  get demand(): ReadonlyMap<string, number> {
    const { known = none, views, counting } = this;
    const isComplete = this.isWhole || (counting.length > 0 && counting.every(({ isReady }) => isReady));
    const demand = new Map(isComplete ? none : known);
    for (const { key, bytes, isReady } of [...views.values(), ...counting].flatMap(({ sources }) => sources))
      demand.set(key, isReady ? bytes : Math.max(bytes, known.get(key) ?? 0));
    // Another reader may keep the source, so its current size is known.
    for (const key of demand.keys()) demand.set(key, this.parts.replicas.sizeOf(key) ?? demand.get(key) ?? 0);
    return demand;
  }

  report(): readonly ReadReport[] {
    return this.manifest.reads.map(({ apiVersion, kind }) => {
      const view = this.views.get(nameOf({ apiVersion, kind }));
      const ages = view?.replicas.flatMap(({ ageMs }) => ageMs ?? []) ?? [];
      return {
        apiVersion,
        kind,
        sources: view?.sources.map(({ key }) => key) ?? [],
        ready: view?.isReady ?? false,
        objects: view?.size ?? 0,
        bytes: view?.bytes ?? 0,
        ...(ages.length > 0 && { ageMs: Math.max(...ages) }),
      };
    });
  }

  /** Returns the read of a kind; `undefined` if it does not keep objects of that kind now. */
  viewOf(kind: { readonly apiVersion: string; readonly kind: string }): ReadView | undefined {
    return this.views.get(nameOf(kind));
  }

  /**
   * Returns the read of a kind, and its index of that name if one is given.
   * @throws WatchfireError WF_READS_UNDECLARED
   */
  find(kind: { readonly apiVersion: string; readonly kind: string }, namespace: string | undefined, index?: string) {
    const view = this.viewOf(kind);
    if (!view) throw undeclared(`it does not keep ${nameOf(kind)}`);
    if (!view.reads(namespace)) throw undeclared(`it keeps ${nameOf(kind)} of other namespaces than ${namespace}`);
    const found = view.read.indexes.find(({ name }) => name === index);
    if (index !== undefined && !found) throw undeclared(`it has no index ${index} of ${nameOf(kind)}`);
    return { view, index: found as ReadIndex | undefined };
  }

  /** Returns a change that a read lags behind, as far as both come from one source, or `undefined`. */
  ahead(delivery: Delivery, since: number): Seen | undefined {
    return changesOf(delivery).find((change) => this.older(change, since).length > 0);
  }

  /** Requests new lists for the reads that lag behind a delivery. */
  refresh(delivery: Delivery, since: number): void {
    for (const change of changesOf(delivery))
      for (const view of this.older(change, since)) view.refresh(change.object.namespace);
  }

  async close(): Promise<void> {
    this.retry?.cancel();
    this.parts.budget.leave(this);
    await this.leave();
  }

  keep(): void {
    void this.leave();
    this.refusal = undefined;
    this.join();
    this.parts.changed();
  }

  measure(): void {
    void this.leave();
    const reader = { grown: () => this.counted(), moved: () => this.counted() };
    this.counting = [...this.open("size/", this.parts.sizes, reader)].map(([, view]) => view);
    this.counted();
    this.parts.changed();
  }

  suspend(equalShare: number): void {
    this.known = this.demand;
    this.isCounted = false;
    const { name } = this.manifest;
    const { limit } = this.parts;
    const demand = [...this.known.values()].reduce((sum, bytes) => sum + bytes, 0);
    const share = `an equal share of \`--cache-limit\`, which is ${limit} bytes, is ${Math.floor(equalShare)}`;
    const what = `the reads of all functions do not fit, and those of ${name} have most: ${demand} bytes or more, where ${share}`;
    this.refuse("WF_READS_SHARE", what);
  }

  private older(
    { trigger: name, object, type, flags, resourceVersion: version, past }: Seen,
    since: number,
  ): ReadView[] {
    const trigger = this.manifest.triggers.find((each) => each.name === name);
    // An object that is no longer selected may still exist.
    if (!trigger || flags?.reason === "unselected") return [];
    const moment = { resourceVersion: resourceVersion(version), since, past };
    const gone = { ...moment, deleted: object };
    return [...this.views.values()].filter((view) => {
      if (!view.includes(trigger)) return false;
      // If the selectors differ, an object that left one selection may be in the other.
      const isGone = type === "Deleted" && view.chooses(trigger);
      return !view.covers(object.namespace, isGone ? gone : moment);
    });
  }

  private join(): void {
    this.parts.budget.enter(this);
    const reader = { grown: () => this.grown(), moved: () => this.moved() };
    for (const [name, view] of this.open("", this.parts.replicas, reader)) this.views.set(name, view);
    // Sources that others already read are complete at once.
    this.learn();
    this.grown();
  }

  private *open(place: string, replicas: Replicas, reader: ReplicaReader): Iterable<[string, ReadView]> {
    const { name, reads } = this.manifest;
    for (const read of reads) {
      const id = `${place}${name}/${nameOf(read)}`;
      yield [nameOf(read), new ReadView(read, id, { ...this.parts, replicas }, reader)];
    }
  }

  private grown(): void {
    if (this.views.size > 0 && this.isWithinItsOwn([...this.views.values()])) this.parts.budget.grown();
  }

  private moved(): void {
    this.learn();
    this.parts.changed();
  }

  /** Once all its objects are present, their size replaces the last known one. */
  private learn(): void {
    if (this.isWhole || !this.isReady) return;
    this.isWhole = true;
    this.known = undefined;
  }

  /** Called when more objects have been counted. A count that already exceeds the limit need not be completed. */
  private counted(): void {
    const { counting } = this;
    if (counting.length === 0 || !this.isWithinItsOwn(counting)) return;
    const isTooLarge = bytesOf(counting) > this.parts.limit;
    if (!isTooLarge && !counting.every(({ isReady }) => isReady)) return;
    this.known = this.demand;
    this.isCounted = true;
    this.parts.budget.measured(this);
  }

  /** Checks the function's own limit and refuses the function if it is exceeded, whatever others take. */
  private isWithinItsOwn(views: readonly ReadView[]): boolean {
    const { cacheBytes, name } = this.manifest;
    if (bytesOf(views) <= cacheBytes) return true;
    this.parts.budget.leave(this);
    this.retry = this.parts.clock.after(retryMs, () => this.keep());
    const whose = "the function's `resources.cache`";
    this.refuse("WF_READS_TOO_LARGE", `the reads of ${name} take more than the ${cacheBytes} bytes of ${whose}`);
    return false;
  }

  /** Drops all objects. Reported once per code, even if the fault is found repeatedly. */
  private refuse(code: "WF_READS_TOO_LARGE" | "WF_READS_SHARE", what: string): void {
    const isNews = this.refusal?.code !== code;
    this.refusal = new WatchfireError(code, { what, place: { file: this.manifest.file }, path: "spec.reads" });
    void this.leave();
    if (isNews) this.parts.refused(this.refusal);
    this.parts.changed();
  }

  private async leave(): Promise<void> {
    const views = [...this.views.values(), ...this.counting];
    this.views = new Map();
    this.counting = [];
    this.isWhole = false;
    await Promise.all(views.map((view) => view.close()));
  }
}

const none: ReadonlyMap<string, number> = new Map();

const bytesOf = (views: readonly ReadView[]): number => views.reduce((sum, { bytes }) => sum + bytes, 0);

/** Returns each event of a batch, or, for a run of a key, its object and each change that triggered it. */
const changesOf = (delivery: Delivery): readonly Seen[] => delivery.members ?? [delivery, ...(delivery.seen ?? [])];

const nameOf = ({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string =>
  `${apiVersion} ${kind}`;

const undeclared = (what: string): WatchfireError => new WatchfireError("WF_READS_UNDECLARED", { what });
