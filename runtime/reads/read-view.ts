import type { Clock } from "../base/clock.ts";
import type { SourceSpec } from "../informer/fanout/source-spec.ts";
import type { Informers } from "../informer/informers.ts";
import { NamespaceInformer } from "../informer/namespace-informer.ts";
import type { ObjectMeta } from "../informer/scan/change.ts";
import type { CachedRead, NamespaceScope, Selection, Trigger } from "../manifest/function.ts";
import type { CachedObject } from "./objects.ts";
import type { Replicas, Seat } from "./replicas.ts";
import type { EventMoment, ReplicaReader, SourceCache } from "./source-cache.ts";

export interface ReadViewParts {
  readonly replicas: Replicas;
  readonly watches: Informers;
  readonly clock: Clock;
  /** Returns the source of a selection in a namespace; "" means all namespaces. */
  readonly specOf: (selection: Selection, namespace: string) => SourceSpec;
}

/** One read of one function, made of one replica for each of its namespaces or one for all. */
export class ReadView {
  readonly read: CachedRead;
  private readonly parts: ReadViewParts;
  private readonly reader: ReplicaReader;
  /** Keyed by namespace; "" if one replica has all namespaces. */
  private readonly seats = new Map<string, Seat>();
  private readonly scope: NamespaceInformer | undefined;
  private scoped = true;

  /** @param id unique, identifies the subscription to its namespaces */
  constructor(read: CachedRead, id: string, parts: ReadViewParts, reader: ReplicaReader) {
    this.read = read;
    this.parts = parts;
    this.reader = reader;
    const { namespaces } = read;
    if (namespaces.type === "all") this.enter("");
    else if (namespaces.type === "names") for (const name of namespaces.names) this.enter(name);
    else this.scope = this.follow(namespaces.labelSelector, id);
  }

  /** Whether every replica has completed a list. */
  get isReady(): boolean {
    return this.scoped && this.replicas.every(({ objects }) => objects !== undefined);
  }

  get replicas(): readonly SourceCache[] {
    return [...this.seats.values()].map(({ replica }) => replica);
  }

  /** Its sources: key, bytes, and whether the first list is complete. */
  get sources(): readonly { readonly key: string; readonly bytes: number; readonly isReady: boolean }[] {
    return [...this.seats.values()].map(({ key, replica }) => {
      const { bytes, objects } = replica;
      return { key, bytes, isReady: objects !== undefined };
    });
  }

  get bytes(): number {
    return this.replicas.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get size(): number {
    return this.replicas.reduce((sum, { objects }) => sum + (objects?.size ?? 0), 0);
  }

  /**
   * Whether it reads a namespace ("" for cluster-scoped objects, `undefined` for all that it reads). Always true for namespaces
   * selected by label, because these can change.
   */
  reads(namespace: string | undefined): boolean {
    const { namespaces } = this.read;
    return namespace === undefined || namespaces.type !== "names" || namespaces.names.includes(namespace);
  }

  get(meta: Pick<ObjectMeta, "namespace" | "name">): CachedObject | undefined {
    return this.replicaOf(meta.namespace)?.objects?.get(meta);
  }

  /**
   * Returns the objects of one namespace or of all. With `where`, those with that field's value, which may include other
   * namespaces; in place of a value, those with too many values to be found.
   */
  objects(
    namespace: string | undefined,
    where?: { readonly field: readonly string[]; readonly value: string | undefined },
  ): readonly Iterable<CachedObject>[] {
    const one = namespace === undefined ? undefined : this.replicaOf(namespace);
    const replicas = namespace === undefined ? this.replicas : one ? [one] : [];
    return replicas.flatMap(({ objects }) => {
      if (!objects) return [];
      if (!where) return objects.in(namespace);
      const { field, value } = where;
      return [value === undefined ? objects.crowded(field) : objects.with(field, value)];
    });
  }

  /**
   * Whether everything that the trigger receives is also in this read. Only then can it be compared with the trigger's events.
   */
  includes({ apiVersion, kind, namespaces, labelSelector, fieldSelector }: Trigger): boolean {
    const { read } = this;
    if (read.apiVersion !== apiVersion || read.kind !== kind) return false;
    const hasLabels = read.labelSelector === "" || read.labelSelector === labelSelector;
    const hasFields = read.fieldSelector === "" || read.fieldSelector === fieldSelector;
    return hasLabels && hasFields && hasNamespaces(read.namespaces, namespaces);
  }

  /** Whether it selects objects exactly as the trigger does. */
  chooses({ labelSelector, fieldSelector }: Trigger): boolean {
    return this.read.labelSelector === labelSelector && this.read.fieldSelector === fieldSelector;
  }

  /**
   * Whether it is not older than an event of a trigger that it includes. True for a namespace that its label selector no longer
   * selects, because nothing of it is shown.
   */
  covers(namespace: string, moment: EventMoment): boolean {
    const replica = this.replicaOf(namespace);
    return replica ? replica.covers(moment) : this.scope !== undefined;
  }

  /** Requests a new list for the namespace of an event. */
  refresh(namespace: string): void {
    this.seatOf(namespace)?.refresh();
  }

  async close(): Promise<void> {
    for (const seat of this.seats.values()) seat.leave();
    this.seats.clear();
    await this.scope?.close();
  }

  private seatOf(namespace: string): Seat | undefined {
    return this.seats.get(this.read.namespaces.type === "all" ? "" : namespace);
  }

  private replicaOf(namespace: string): SourceCache | undefined {
    return this.seatOf(namespace)?.replica;
  }

  private enter(namespace: string): void {
    const { replicas, specOf } = this.parts;
    const fields = this.read.indexes.map(({ field }) => field);
    this.seats.set(namespace, replicas.join(specOf(this.read, namespace), fields, this.reader));
  }

  private follow(labelSelector: string, id: string): NamespaceInformer {
    this.scoped = false;
    return new NamespaceInformer({
      ...this.parts,
      id: `${id}/namespaces`,
      labelSelector,
      believes: () => true,
      enter: (namespace) => this.enter(namespace),
      leave: (namespace) => {
        this.seats.get(namespace)?.leave();
        this.seats.delete(namespace);
        this.reader.moved();
      },
      ready: () => {
        this.scoped = true;
        this.reader.moved();
      },
    });
  }
}

function hasNamespaces(read: NamespaceScope, trigger: NamespaceScope): boolean {
  if (read.type === "all") return true;
  if (read.type === "labels") return trigger.type === "labels" && read.labelSelector === trigger.labelSelector;
  return trigger.type === "names" && trigger.names.every((name) => read.names.includes(name));
}
