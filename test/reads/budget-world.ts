import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { SourceSpec } from "../../runtime/informer/fanout/source-spec.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import type { Informers } from "../../runtime/informer/informers.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import type { FunctionManifest } from "../../runtime/manifest/function.ts";
import { keep } from "../../runtime/reads/objects.ts";
import { Reads } from "../../runtime/reads/reads.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { read, reading } from "./manifest.ts";

/** Milliseconds from a subscription to its list. */
const listMs = 500;

interface Followed {
  readonly kind: string;
  isListed: boolean;
}

/**
 * Functions that share a limit, and objects that a test adds and removes. Each source lists half a second after its start.
 */
export class BudgetWorld {
  readonly clock = new VirtualClock();
  readonly reads: Reads;
  /** Violations of the limit or of the equal share, in words. */
  readonly broken: string[] = [];
  /** Number of suspensions of each function. */
  readonly suspensions = new Map<string, number>();
  /** Number of started lists, by kind. */
  readonly lists = new Map<string, number>();
  readonly limit: number;
  private readonly functions = new Map<string, FunctionManifest>();
  private readonly followed = new Map<Subscriber, Followed>();
  private readonly kinds = new Map<string, Map<string, Change>>();
  /** Previous sizes of each kind, with the clock time until which each was valid. */
  private readonly sizes = new Map<string, { readonly until: number; readonly bytes: number }[]>();
  private version = 1;

  constructor(limit: number) {
    this.limit = limit;
    const watches = {
      rewindsOf: () => 0,
      subscribe: (spec: SourceSpec, subscriber: Subscriber) => this.follow(spec.kind, subscriber),
    };
    this.reads = new Reads({
      watches: watches as unknown as Informers,
      clock: this.clock,
      limit,
      specOf: ({ apiVersion, kind }) => ({ apiVersion, kind }),
      refused: (name, { code }) => this.refused(name, code),
    });
  }

  define(name: string, kinds: readonly string[]): void {
    const reads = kinds.map((kind) => read({ kind }));
    const manifest = reading(reads, { name, cacheBytes: Number.MAX_SAFE_INTEGER });
    this.functions.set(name, manifest);
    this.reads.set(manifest);
    this.look();
  }

  remove(name: string): void {
    this.functions.delete(name);
    this.reads.delete(name);
  }

  /** Adds or changes one object with so many bytes. */
  put(kind: string, name: string, bytes: number): void {
    this.note(kind);
    const meta = { namespace: "a", name, uid: name, resourceVersion: resourceVersion(String(++this.version)) };
    const body = Buffer.from(JSON.stringify({ metadata: meta, data: "x".repeat(bytes) }));
    const change: Change = { type: "Modified", meta, body, receivedAt: 0 };
    this.objectsOf(kind).set(name, change);
    this.tell(kind, change);
  }

  /** Removes all objects of a kind. */
  clear(kind: string): void {
    this.note(kind);
    for (const change of [...this.objectsOf(kind).values()]) {
      const meta = { ...change.meta, resourceVersion: resourceVersion(String(++this.version)) };
      this.objectsOf(kind).delete(meta.name);
      this.tell(kind, { ...change, type: "Deleted", meta });
    }
  }

  sizeOf(kind: string): number {
    return [...this.objectsOf(kind).values()].reduce((sum, change) => sum + keep(change).bytes, 0);
  }

  isSuspended(name: string): boolean {
    return this.reads.of(name)?.fault !== undefined;
  }

  isReady(name: string): boolean {
    return this.reads.of(name)?.isReady ?? false;
  }

  /** Suspended functions whose reads would fit into the limit together with all that are kept. */
  get leftOut(): readonly string[] {
    return [...this.functions.keys()].filter((name) => {
      const kept = [...this.functions.keys()].filter((other) => !this.isSuspended(other));
      const kinds = new Set([...kept, name].flatMap((each) => this.kindsOf(each)));
      const sum = [...kinds].reduce((total, kind) => total + this.sizeOf(kind), 0);
      return !this.isReady(name) && sum <= this.limit;
    });
  }

  private kindsOf(name: string): readonly string[] {
    return this.functions.get(name)?.reads.map(({ kind }) => kind) ?? [];
  }

  private refused(name: string, code: string): void {
    this.suspensions.set(name, (this.suspensions.get(name) ?? 0) + 1);
    const count = this.functions.size;
    const most = this.kindsOf(name).reduce((sum, kind) => sum + this.largestOf(kind), 0);
    if (code !== "WF_READS_SHARE") this.broken.push(`${name} is refused with ${code}`);
    if (most <= this.limit / count) this.broken.push(`${name} is suspended with ${most} bytes, one of ${count}`);
  }

  /** The largest size of a kind since the start of any list that may still be in progress, which reflects that size. */
  private largestOf(kind: string): number {
    const since = this.clock.monotonic() - 2 * listMs;
    const past = (this.sizes.get(kind) ?? []).filter(({ until }) => until >= since).map(({ bytes }) => bytes);
    return Math.max(this.sizeOf(kind), ...past);
  }

  private note(kind: string): void {
    const past = this.sizes.get(kind) ?? [];
    past.push({ until: this.clock.monotonic(), bytes: this.sizeOf(kind) });
    this.sizes.set(kind, past);
  }

  private objectsOf(kind: string): Map<string, Change> {
    const there = this.kinds.get(kind) ?? new Map<string, Change>();
    this.kinds.set(kind, there);
    return there;
  }

  private tell(kind: string, change: Change): void {
    for (const [subscriber, followed] of [...this.followed])
      if (followed.kind === kind && followed.isListed && this.followed.has(subscriber)) {
        subscriber.change(change);
        this.look();
      }
  }

  private follow(kind: string, subscriber: Subscriber): { close(): Promise<void> } {
    const followed = { kind, isListed: false };
    this.followed.set(subscriber, followed);
    this.lists.set(kind, (this.lists.get(kind) ?? 0) + 1);
    const late = this.clock.after(listMs, () => this.list(subscriber, followed));
    return {
      close: async () => {
        late.cancel();
        this.followed.delete(subscriber);
      },
    };
  }

  private list(subscriber: Subscriber, followed: Followed): void {
    const receiver = subscriber.list("initial", undefined);
    for (const change of [...this.objectsOf(followed.kind).values()]) {
      receiver.item(change);
      this.look();
      if (!this.followed.has(subscriber)) {
        receiver.abort();
        return;
      }
    }
    receiver.end(resourceVersion(String(this.version)));
    followed.isListed = true;
    this.look();
  }

  private look(): void {
    const { bytes } = this.reads.totals();
    if (bytes > this.limit) this.broken.push(`${bytes} bytes are kept, of ${this.limit}`);
  }
}
