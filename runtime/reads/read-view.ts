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
  /** What a selection reads in a namespace, "" of all. */
  readonly specOf: (selection: Selection, namespace: string) => SourceSpec;
}

/** One read of one function: the replicas that it is made of, one for each of its namespaces or one for all. */
export class ReadView {
  readonly read: CachedRead;
  private readonly parts: ReadViewParts;
  private readonly reader: ReplicaReader;
  /** By namespace; "" where one replica has all. */
  private readonly seats = new Map<string, Seat>();
  private readonly scope: NamespaceInformer | undefined;
  private scoped = true;

  /** @param id unique, for the book-keeping of the source of its namespaces */
  constructor(read: CachedRead, id: string, parts: ReadViewParts, reader: ReplicaReader) {
    this.read = read;
    this.parts = parts;
    this.reader = reader;
    const { namespaces } = read;
    if (namespaces.type === "all") this.enter("");
    else if (namespaces.type === "names") for (const name of namespaces.names) this.enter(name);
    else this.scope = this.follow(namespaces.labelSelector, id);
  }

  /** Whether every replica of it has had a complete list. */
  get isReady(): boolean {
    return this.scoped && this.replicas.every(({ objects }) => objects !== undefined);
  }

  get replicas(): readonly SourceCache[] {
    return [...this.seats.values()].map(({ replica }) => replica);
  }

  /** Its sources as `sourceKey` names them, each with what it takes and whether its first list is there. */
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

  /** Whether a namespace ("" of none, undefined for all of the read's) is one that it reads; those of a label come and go. */
  reads(namespace: string | undefined): boolean {
    const { namespaces } = this.read;
    return namespace === undefined || namespaces.type !== "names" || namespaces.names.includes(namespace);
  }

  get(meta: Pick<ObjectMeta, "namespace" | "name">): CachedObject | undefined {
    return this.replicaOf(meta.namespace)?.objects?.get(meta);
  }

  /** Objects of one namespace or of all; where a field has a value, those of other namespaces among them. */
  objects(
    namespace: string | undefined,
    where?: { readonly field: readonly string[]; readonly value: string },
  ): readonly Iterable<CachedObject>[] {
    const one = namespace === undefined ? undefined : this.replicaOf(namespace);
    const replicas = namespace === undefined ? this.replicas : one ? [one] : [];
    return replicas.flatMap(({ objects }) => {
      if (!objects) return [];
      return where ? [objects.with(where.field, where.value)] : objects.in(namespace);
    });
  }

  /** Whether all that the trigger is told of is in it as well: then it can be no older than an event. */
  includes({ apiVersion, kind, namespaces, labelSelector, fieldSelector }: Trigger): boolean {
    const { read } = this;
    if (read.apiVersion !== apiVersion || read.kind !== kind) return false;
    const hasLabels = read.labelSelector === "" || read.labelSelector === labelSelector;
    const hasFields = read.fieldSelector === "" || read.fieldSelector === fieldSelector;
    return hasLabels && hasFields && hasNamespaces(read.namespaces, namespaces);
  }

  /** Whether it chooses objects as the trigger does. */
  chooses({ labelSelector, fieldSelector }: Trigger): boolean {
    return this.read.labelSelector === labelSelector && this.read.fieldSelector === fieldSelector;
  }

  /** Whether it is no older than an event of a trigger that it includes. A namespace that its labels no longer choose has nothing to show. */
  covers(namespace: string, moment: EventMoment): boolean {
    const replica = this.replicaOf(namespace);
    return replica ? replica.covers(moment) : this.scope !== undefined;
  }

  /** Has the API server list anew what an event of this namespace is of. */
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
