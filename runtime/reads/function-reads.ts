import type { Timer } from "../clock.ts";
import type { Delivery, Seen } from "../dispatch/delivery/delivery.ts";
import { WatchfireError } from "../errors.ts";
import type { FunctionManifest, ReadIndex } from "../manifest/function.ts";
import { resourceVersion } from "../resource-version.ts";
import { ReadView, type ReadViewParts } from "./read-view.ts";

/** How long after a refusal it is tried again, in milliseconds. */
const retryMs = 300_000;

/** What a function's reads need. */
export interface FunctionReadsParts extends ReadViewParts {
  /** Bytes that the replicas of all functions may take. */
  readonly limit: number;
  /** It became ready, or came further; or stands still, or no longer does. */
  readonly changed: () => void;
  readonly refused: (fault: WatchfireError) => void;
}

/** How one read does, for the status. */
export interface ReadReport {
  readonly apiVersion: string;
  readonly kind: string;
  /** As `sourceKey` names them. */
  readonly sources: readonly string[];
  readonly ready: boolean;
  readonly objects: number;
  readonly bytes: number;
  /** Milliseconds since the API server last said anything of it; absent before its first list. */
  readonly ageMs?: number | undefined;
}

/** What one function keeps in memory. While that is more than it may be nothing is kept, and its events wait. */
export class FunctionReads {
  readonly manifest: FunctionManifest;
  private readonly parts: FunctionReadsParts;
  private views = new Map<string, ReadView>();
  private refusal: WatchfireError | undefined;
  private retry: Timer | undefined;

  constructor(manifest: FunctionManifest, parts: FunctionReadsParts) {
    this.manifest = manifest;
    this.parts = parts;
    this.open();
  }

  /** Why its objects are not kept. */
  get fault(): WatchfireError | undefined {
    return this.refusal;
  }

  /** Whether the first list of each read is complete. */
  get isReady(): boolean {
    return !this.refusal && [...this.views.values()].every(({ isReady }) => isReady);
  }

  /** Sources that have not given a first list, as `sourceKey` names them. */
  get behind(): readonly string[] {
    return [...this.views.values()].flatMap(({ sources }) =>
      sources.filter(({ isReady }) => !isReady).map(({ key }) => key),
    );
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

  /**
   * The read of a kind, and its index of a name where one is asked for.
   * @throws WatchfireError WF_READS_UNDECLARED
   */
  find(kind: { readonly apiVersion: string; readonly kind: string }, namespace: string | undefined, index?: string) {
    const view = this.views.get(nameOf(kind));
    if (!view) throw undeclared(`it does not keep ${nameOf(kind)}`);
    if (!view.reads(namespace)) throw undeclared(`it keeps ${nameOf(kind)} of other namespaces than ${namespace}`);
    const found = view.read.indexes.find(({ name }) => name === index);
    if (index !== undefined && !found) throw undeclared(`it has no index ${index} of ${nameOf(kind)}`);
    return { view, index: found as ReadIndex | undefined };
  }

  /** A change that a read is older than, as far as both come from one source; undefined where there is none. */
  ahead(delivery: Delivery, since: number): Seen | undefined {
    return changesOf(delivery).find((change) => this.older(change, since).length > 0);
  }

  /** Has lists made anew that a delivery waits for. */
  refresh(delivery: Delivery, since: number): void {
    for (const change of changesOf(delivery))
      for (const view of this.older(change, since)) view.refresh(change.object.namespace);
  }

  async close(): Promise<void> {
    this.retry?.cancel();
    await this.leave();
  }

  private older(
    { trigger: name, object, type, flags, resourceVersion: version, past }: Seen,
    since: number,
  ): ReadView[] {
    const trigger = this.manifest.triggers.find((each) => each.name === name);
    // An object that is no longer chosen may well be there.
    if (!trigger || flags?.reason === "unselected") return [];
    const moment = { resourceVersion: resourceVersion(version), since, past };
    const gone = { ...moment, deleted: object };
    return [...this.views.values()].filter((view) => {
      if (!view.includes(trigger)) return false;
      // Where the choices differ, what left the one may be in the other.
      const isGone = type === "Deleted" && view.chooses(trigger);
      return !view.covers(object.namespace, isGone ? gone : moment);
    });
  }

  private open(): void {
    const reader = { grown: () => this.grown(), moved: () => this.parts.changed() };
    const { name, reads } = this.manifest;
    for (const read of reads)
      this.views.set(nameOf(read), new ReadView(read, `${name}/${nameOf(read)}`, this.parts, reader));
    // What others read already is there at once.
    this.grown();
  }

  private grown(): void {
    if (this.refusal) return;
    const { cacheBytes, name, file } = this.manifest;
    const own = [...this.views.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    const { limit, replicas } = this.parts;
    const isOwn = own > cacheBytes;
    if (!isOwn && replicas.bytes <= limit) return;
    const most = isOwn ? cacheBytes : limit;
    const whose = isOwn ? `the function's \`resources.cache\`` : `\`--cache-limit\`, which all functions share`;
    const place = { file };
    const what = `the reads of ${name} take more than the ${most} bytes of ${whose}`;
    this.refusal = new WatchfireError("WF_READS_TOO_LARGE", { what, place, path: "spec.reads" });
    void this.leave();
    this.retry = this.parts.clock.after(retryMs, () => {
      this.refusal = undefined;
      this.open();
      this.parts.changed();
    });
    this.parts.refused(this.refusal);
    this.parts.changed();
  }

  private async leave(): Promise<void> {
    const views = [...this.views.values()];
    this.views = new Map();
    await Promise.all(views.map((view) => view.close()));
  }
}

/** Of a batch each of its events; of a run of a key its object, and each change that woke it. */
const changesOf = (delivery: Delivery): readonly Seen[] => delivery.members ?? [delivery, ...(delivery.seen ?? [])];

const nameOf = ({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string =>
  `${apiVersion} ${kind}`;

const undeclared = (what: string): WatchfireError => new WatchfireError("WF_READS_UNDECLARED", { what });
