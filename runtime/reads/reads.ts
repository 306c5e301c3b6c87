import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { byAge, noResourceVersion } from "../base/resource-version.ts";
import type { SourceSpec } from "../informer/fanout/source-spec.ts";
import type { Informers } from "../informer/informers.ts";
import { labelQuery } from "../kube/label-query.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { CacheBudget } from "./cache-budget.ts";
import { FunctionReads, type FunctionReadsParts, type ReadReport } from "./function-reads.ts";
import type { ReadView } from "./read-view.ts";
import { Replica } from "./replica.ts";
import { Replicas } from "./replicas.ts";
import { SourceSize } from "./source-size.ts";

/** Bytes of one answer: as `ctx.kube` may have, so that an isolate takes it. */
const answerLimit = 16 * 2 ** 20;

interface ReadsParts extends Pick<FunctionReadsParts, "specOf" | "limit"> {
  readonly watches: Informers;
  readonly clock: Clock;
  /** A function's reads were refused, and its events wait. */
  readonly refused: (functionName: string, fault: WatchfireError) => void;
}

/** What a handler looks for by `ctx.cache.get`. */
interface ObjectQuery {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** By `ctx.cache.list`. */
interface CollectionQuery extends Omit<ObjectQuery, "name"> {
  readonly labelSelector?: string | undefined;
  /** At most one entry: an index's name, and the value to have there. */
  readonly index?: Readonly<Record<string, string>> | undefined;
}

/**
 * The objects that functions keep in memory by `reads`, and the answers of `ctx.cache`. Each function sees its own reads,
 * whoever shares a source with it.
 */
export class Reads {
  private readonly parts: ReadsParts;
  private readonly replicas: Replicas;
  private readonly sizes: Replicas;
  private readonly budget: CacheBudget;
  private readonly functions = new Map<string, FunctionReads>();
  /** By function, how often its reads were refused since it came. */
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

  /** Follows what the manifest reads; what an earlier one read and this one does not is let go of. */
  set(manifest: FunctionManifest): void {
    const { name } = manifest;
    const before = this.functions.get(name);
    if (before?.manifest === manifest) return;
    if (manifest.reads.length === 0) this.functions.delete(name);
    else {
      // It joins first: what both read stays.
      const made = new FunctionReads(manifest, {
        ...this.parts,
        replicas: this.replicas,
        sizes: this.sizes,
        budget: this.budget,
        changed: () => this.tell(name),
        refused: (fault) => {
          this.suspensions.set(name, (this.suspensions.get(name) ?? 0) + 1);
          this.parts.refused(name, fault);
        },
      });
      this.functions.set(name, made);
    }
    void before?.close();
    this.tell(name);
  }

  /** Lets go of all that a function reads. */
  delete(functionName: string): void {
    void this.functions.get(functionName)?.close();
    this.functions.delete(functionName);
    this.suspensions.delete(functionName);
    this.tell(functionName);
  }

  /** What a function reads; undefined where that is nothing. */
  of(functionName: string): FunctionReads | undefined {
    return this.functions.get(functionName);
  }

  /** Says who else is told whenever the reads of a function have come further. @returns what ends that */
  heardBy(listener: (functionName: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(functionName: string): void {
    for (const listener of this.listeners) listener(functionName);
  }

  /** Each read of each function, for metrics. What functions share is told of each. */
  reports(): readonly (ReadReport & { readonly function: string })[] {
    return [...this.functions].flatMap(([name, reads]) =>
      reads.report().map((report) => ({ function: name, ...report })),
    );
  }

  /** What all of them take, where what functions share counts once, of how much; and how often each function's were refused. */
  totals() {
    let objects = 0;
    for (const replica of this.replicas.list()) objects += replica.objects?.size ?? 0;
    const suspensions = [...this.suspensions].map(([name, count]) => ({ function: name, count }));
    return { objects, bytes: this.replicas.bytes, limit: this.parts.limit, suspensions };
  }

  /** The object as JSON, or `null`. @throws WatchfireError WF_READS_UNDECLARED */
  get(functionName: string, { name, namespace = "", ...kind }: ObjectQuery): string {
    const { view } = this.reads(functionName).find(kind, namespace);
    return view.get({ namespace, name })?.body.toString("utf8") ?? "null";
  }

  /**
   * `{ items, resourceVersion, ageMs }` as JSON.
   * @throws WatchfireError WF_READS_UNDECLARED, WF_READS_SELECTOR, WF_READS_ANSWER
   */
  list(functionName: string, { namespace, labelSelector = "", index = {}, ...kind }: CollectionQuery): string {
    const [asked] = Object.entries(index);
    const { view, index: found } = this.reads(functionName).find(kind, namespace, asked?.[0]);
    const chooses = labelQuery(labelSelector);
    const where = found && asked && { field: found.field, value: asked[1] };
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

  /** `{ resourceVersion, ageMs }` as JSON. @throws WatchfireError WF_READS_UNDECLARED */
  age(functionName: string, kind: Pick<ObjectQuery, "apiVersion" | "kind">): string {
    return `{${ageOf(this.reads(functionName).find(kind, undefined).view)}}`;
  }

  private reads(functionName: string): FunctionReads {
    const reads = this.functions.get(functionName);
    if (reads) return reads;
    throw new WatchfireError("WF_READS_UNDECLARED", { what: "the manifest has no `reads`" });
  }
}

/** Of several replicas, the oldest moment and the longest silence. */
function ageOf({ replicas }: ReadView): string {
  const [at = noResourceVersion] = replicas.flatMap((replica) => replica.at ?? []).sort(byAge);
  const ageMs = Math.max(0, ...replicas.map((replica) => replica.ageMs ?? 0));
  return `"resourceVersion":${JSON.stringify(at)},"ageMs":${Math.round(ageMs)}`;
}

const tooLarge = ({ apiVersion, kind }: Pick<ObjectQuery, "apiVersion" | "kind">): WatchfireError =>
  new WatchfireError("WF_READS_ANSWER", {
    what: `a list of ${apiVersion} ${kind} has more than ${answerLimit} bytes`,
  });
