import { RawFields } from "../engine/filter/raw-fields.ts";
import type { Change, ObjectMeta } from "../informer/scan/change.ts";
import type { Labels } from "../kube/label-query.ts";
import { apart } from "../v8/own-copy.ts";
import { FieldIndex } from "./field-index.ts";

/** A cached object: its JSON text, with the parts that are used often. */
export interface CachedObject {
  readonly meta: ObjectMeta;
  /** In separate memory, so that it does not keep a larger buffer alive. */
  readonly body: Buffer;
  readonly labels: Labels;
  /** Bytes that it takes, without indexes. */
  readonly bytes: number;
}

/**
 * Bytes that an object takes in addition to its text and its labels: buffers, strings, entries of maps. Measured: see DESIGN.md.
 */
const objectOverhead = 400;

const labelField = new RawFields([["metadata", "labels"]]);
const noLabels: Labels = Object.freeze({});

/** Returns the object of a change, to be cached. */
export function keep({ meta, body: received, members }: Change): CachedObject {
  const [text] = labelField.of({ body: received, members }) ?? [];
  const labels = text ? labelsIn(text) : parsedLabels(received);
  const body = apart(received);
  return { meta, body, labels, bytes: objectOverhead + body.length + 2 * (text?.length ?? 0) };
}

function labelsIn(text: Buffer): Labels {
  return text.length === 0 ? noLabels : ((JSON.parse(text.toString("utf8")) as Labels | null) ?? noLabels);
}

/** Fallback for the rare object whose keys are written with escapes. */
function parsedLabels(body: Buffer): Labels {
  const { metadata } = JSON.parse(body.toString("utf8")) as { metadata?: { labels?: Labels | null } };
  return metadata?.labels ?? noLabels;
}

/** The objects of one source at one moment, by namespace and name, and by the values of indexed fields. */
export class Objects {
  private readonly byNamespace = new Map<string, Map<string, CachedObject>>();
  private readonly indexes = new Map<string, FieldIndex<CachedObject>>();
  size = 0;
  /** Bytes that all of them take, including indexes. */
  bytes = 0;

  /** @param fields paths of the fields to index */
  constructor(fields: Iterable<readonly string[]>) {
    for (const path of fields) this.indexes.set(indexKey(path), new FieldIndex(path));
  }

  get({ namespace, name }: Pick<ObjectMeta, "namespace" | "name">): CachedObject | undefined {
    return this.byNamespace.get(namespace)?.get(name);
  }

  put(kept: CachedObject): void {
    const { namespace, name } = kept.meta;
    this.remove(kept.meta);
    const there = this.byNamespace.get(namespace);
    if (there) there.set(name, kept);
    else this.byNamespace.set(namespace, new Map([[name, kept]]));
    this.size++;
    this.bytes += kept.bytes;
    for (const index of this.indexes.values()) this.bytes += index.add(kept);
  }

  remove({ namespace, name }: Pick<ObjectMeta, "namespace" | "name">): void {
    const there = this.byNamespace.get(namespace);
    const kept = there?.get(name);
    if (!there || !kept) return;
    there.delete(name);
    if (there.size === 0) this.byNamespace.delete(namespace);
    this.size--;
    this.bytes -= kept.bytes;
    for (const index of this.indexes.values()) this.bytes -= index.remove(kept);
  }

  /**
   * Returns the objects of one namespace, or of all, grouped by namespace. One iterable over all of them takes four times as
   * long.
   */
  in(namespace: string | undefined): Iterable<CachedObject>[] {
    if (namespace === undefined) return [...this.byNamespace.values()].map((there) => there.values());
    return [this.byNamespace.get(namespace)?.values() ?? []];
  }

  /** Returns the objects whose field has this value, or contains it if it is a list. */
  with(path: readonly string[], value: string): Iterable<CachedObject> {
    return this.indexes.get(indexKey(path))?.of(value) ?? [];
  }

  /** Returns the objects that the field's index cannot find, since each has too many values. */
  crowded(path: readonly string[]): Iterable<CachedObject> {
    return this.indexes.get(indexKey(path))?.crowded ?? [];
  }

  /** Indexes another field. */
  index(path: readonly string[]): void {
    const key = indexKey(path);
    if (this.indexes.has(key)) return;
    const index = new FieldIndex<CachedObject>(path);
    this.indexes.set(key, index);
    for (const there of this.in(undefined)) for (const kept of there) this.bytes += index.add(kept);
  }
}

const indexKey = (path: readonly string[]): string => JSON.stringify(path);
