import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { byAge, noResourceVersion } from "../base/resource-version.ts";
import type { SourceSpec } from "../informer/fanout/source-spec.ts";
import type { Informers } from "../informer/informers.ts";
import type { ObjectMeta } from "../informer/scan/change.ts";
import { labelQuery } from "../kube/label-query.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { CacheBudget } from "./cache-budget.ts";
import { mostValues } from "./field-index.ts";
import { FunctionReads, type FunctionReadsParts, type ReadReport } from "./function-reads.ts";
import type { ReadView } from "./read-view.ts";
import { Replica } from "./replica.ts";
import { Replicas } from "./replicas.ts";
import { SourceSize } from "./source-size.ts";

/** Maximum bytes of one answer, the same as for `ctx.kube`, so that an isolate can hold it. */
const answerLimit = 16 * 2 ** 20;

interface ReadsParts extends Pick<FunctionReadsParts, "specOf" | "limit"> {
  readonly watches: Informers;
  readonly clock: Clock;
  /** Called when a function's reads were refused, so that its events wait. */
  readonly refused: (functionName: string, fault: WatchfireError) => void;
}

/** Arguments of `ctx.cache.get`. */
interface ObjectQuery {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** Arguments of `ctx.cache.list`. */
interface CollectionQuery extends Omit<ObjectQuery, "name"> {
  readonly labelSelector?: string | undefined;
  /** At most one entry: an index's name, and the value to look up. */
  readonly index?: Readonly<Record<string, string>> | undefined;
}

/**
 * The objects that functions keep in memory by `reads`, and the answers of `ctx.cache`. Each function sees only its own reads,
 * even if others share a source with it.
 */
export class Reads {
  private readonly parts: ReadsParts;
  private readonly replicas: Replicas;
  private readonly sizes: Replicas;
  private readonly budget: CacheBudget;
  private readonly functions = new Map<string, FunctionReads>();
  /** How often each function's reads were refused since it was added. */
  private readonly suspensions = new Map<string, number>();
  private readonly listeners = new Set<(functionName: string) => void>();

  constructor(parts: ReadsParts) {
    this.parts = parts;
    const { watches, clock, limit } = parts;
    const keeps = (spec: SourceSpec, key: string) => new Replica(`reads/${key}`, clock, () => watches.rewindsOf(spec));
    this.replicas = new Replicas({ watches, clock, make: keeps });
    this.sizes = new Replicas({ watches, clock, make: (_, key) => new SourceSize(`reads-size/${key}`) });
    this.budget = new CacheBudget(limit, clock, () => this.replicas.bytes);
  }

  /** Starts the reads of a manifest. Reads of an earlier manifest that this one does not have are released. */
  set(manifest: FunctionManifest): void {
    const { name } = manifest;
    const before = this.functions.get(name);
    if (before?.manifest === manifest) return;
    if (manifest.reads.length === 0) this.functions.delete(name);
    else {
      // The new reads join first, so that replicas in both stay.
      const made = new FunctionReads(manifest, {
        ...this.parts,
        replicas: this.replicas,
        sizes: this.sizes,
        budget: this.budget,
        changed: () => this.notify(name),
        refused: (fault) => {
          this.suspensions.set(name, (this.suspensions.get(name) ?? 0) + 1);
          this.parts.refused(name, fault);
        },
      });
      this.functions.set(name, made);
    }
    void before?.close();
    this.notify(name);
  }

  /** Releases all reads of a function. */
  delete(functionName: string): void {
    void this.functions.get(functionName)?.close();
    this.functions.delete(functionName);
    this.suspensions.delete(functionName);
    this.notify(functionName);
  }

  /** Returns a function's reads, or `undefined` if it has no reads. */
  of(functionName: string): FunctionReads | undefined {
    return this.functions.get(functionName);
  }

  /** Adds a listener that is called whenever a function's reads have advanced. @returns a function that removes it */
  heardBy(listener: (functionName: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private notify(functionName: string): void {
    for (const listener of this.listeners) listener(functionName);
  }

  /** Returns each read of each function, for metrics. Shared objects are reported for each reader. */
  reports(): readonly (ReadReport & { readonly function: string })[] {
    return [...this.functions].flatMap(([name, reads]) =>
      reads.report().map((report) => ({ function: name, ...report })),
    );
  }

  /**
   * Returns the total objects and bytes, with shared objects counted once, the limit, and how often each function was refused.
   */
  totals() {
    let objects = 0;
    for (const replica of this.replicas.list()) objects += replica.objects?.size ?? 0;
    const suspensions = [...this.suspensions].map(([name, count]) => ({ function: name, count }));
    return { objects, bytes: this.replicas.bytes, limit: this.parts.limit, suspensions };
  }

  /** Returns the object as JSON, or `null`. @throws WatchfireError WF_READS_UNDECLARED */
  get(functionName: string, { name, namespace = "", ...kind }: ObjectQuery): string {
    const { view } = this.reads(functionName).find(kind, namespace);
    return view.get({ namespace, name })?.body.toString("utf8") ?? "null";
  }

  /**
   * Returns the object's text and its state, which changes with each write of the object; `undefined` if it is not there, or if
   * the function does not keep whole objects of its kind in this namespace.
   */
  kept(functionName: string, ref: CollectionQuery & { readonly name?: string }) {
    const { name = "", namespace = "" } = ref;
    const found = this.wholeView(functionName, ref)?.get({ namespace, name });
    return found && { state: this.stateIn(ref, found.meta.resourceVersion), body: found.body };
  }

  /** Returns the state of an object with this resourceVersion; `undefined` if the function does not keep such objects. */
  stateOf(functionName: string, ref: CollectionQuery, version: string): string | undefined {
    return this.wholeView(functionName, ref) && this.stateIn(ref, version);
  }

  /** After a restore of the cluster, an object may have the same version in another state. */
  private stateIn(kind: Pick<ObjectQuery, "apiVersion" | "kind">, version: string): string {
    return `${this.parts.watches.rewindsOf(kind)} ${version}`;
  }

  private wholeView(functionName: string, { namespace = "", ...kind }: CollectionQuery): ReadView | undefined {
    const view = this.functions.get(functionName)?.viewOf(kind);
    return view?.read.object === "Full" && view.reads(namespace) ? view : undefined;
  }

  /**
   * Returns `{ items, resourceVersion, ageMs }` as JSON.
   * @throws WatchfireError WF_READS_UNDECLARED, WF_READS_SELECTOR, WF_READS_INDEX, WF_READS_ANSWER
   */
  list(functionName: string, { namespace, labelSelector = "", index = {}, ...kind }: CollectionQuery): string {
    const [asked] = Object.entries(index);
    const { view, index: found } = this.reads(functionName).find(kind, namespace, asked?.[0]);
    const chooses = labelQuery(labelSelector);
    const where = found && asked && { field: found.field, value: asked[1] };
    for (const crowded of where ? view.objects(namespace, { ...where, value: undefined }) : []) {
      for (const { meta } of crowded) {
        if (namespace === undefined || meta.namespace === namespace) throw unfindable(kind, found?.name, meta);
      }
    }
    const items: string[] = [];
    let bytes = 0;
    for (const kept of view.objects(namespace, where)) {
      for (const { meta, labels, body } of kept) {
        if (namespace !== undefined && meta.namespace !== namespace) continue;
        if (labelSelector !== "" && !chooses(labels)) continue;
        bytes += body.length;
        if (bytes > answerLimit) throw tooLarge(kind);
        items.push(body.toString("utf8"));
      }
    }
    return `{"items":[${items.join(",")}],${ageOf(view)}}`;
  }

  /** Returns `{ resourceVersion, ageMs }` as JSON. @throws WatchfireError WF_READS_UNDECLARED */
  age(functionName: string, kind: Pick<ObjectQuery, "apiVersion" | "kind">): string {
    return `{${ageOf(this.reads(functionName).find(kind, undefined).view)}}`;
  }

  private reads(functionName: string): FunctionReads {
    const reads = this.functions.get(functionName);
    if (reads) return reads;
    throw new WatchfireError("WF_READS_UNDECLARED", { what: "the manifest has no `reads`" });
  }
}

/** With several replicas, the oldest resourceVersion and the largest age. */
function ageOf({ replicas }: ReadView): string {
  const [at = noResourceVersion] = replicas.flatMap((replica) => replica.at ?? []).sort(byAge);
  const ageMs = Math.max(0, ...replicas.map((replica) => replica.ageMs ?? 0));
  return `"resourceVersion":${JSON.stringify(at)},"ageMs":${Math.round(ageMs)}`;
}

/** A list without the object would look complete. */
function unfindable(
  { apiVersion, kind }: Pick<ObjectQuery, "apiVersion" | "kind">,
  index: string | undefined,
  { namespace, name }: ObjectMeta,
): WatchfireError {
  const what = `${apiVersion} ${kind} ${namespace === "" ? "" : `${namespace}/`}${name} has more than ${mostValues} values for the index ${index}`;
  return new WatchfireError("WF_READS_INDEX", { what });
}

const tooLarge = ({ apiVersion, kind }: Pick<ObjectQuery, "apiVersion" | "kind">): WatchfireError =>
  new WatchfireError("WF_READS_ANSWER", {
    what: `a list of ${apiVersion} ${kind} has more than ${answerLimit} bytes`,
  });
