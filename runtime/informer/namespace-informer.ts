import type { Clock } from "../base/clock.ts";
import type { SourceSpec } from "./fanout/source-spec.ts";
import type { ListReceiver, Subscriber } from "./fanout/subscriber.ts";
import type { Informers, Watch } from "./informers.ts";
import type { Change } from "./scan/change.ts";
import { ObjectTurns } from "./scan/object-turns.ts";

/** Why a namespace is no longer in scope: it was deleted, or its labels no longer match. */
type LeaveReason = "deleted" | "unselected";

interface NamespaceScopeOptions {
  readonly watches: Informers;
  /** Unique; for the source's own book-keeping. */
  readonly id: string;
  /** The selector that namespaces must match. */
  readonly labelSelector: string;
  readonly clock: Clock;
  /** Whether to follow a namespace at all. Default: follow all. */
  concerns?(namespace: string): boolean;
  /** Whether to accept a complete list of the namespaces. If not, a second one is requested after 30 s. */
  believes(namespaces: readonly string[]): boolean;
  /** Reports the first complete list: all of these will enter. */
  begin?(namespaces: readonly string[]): void;
  enter(namespace: string): void;
  leave(namespace: string, reason: LeaveReason): void;
  /** All namespaces of the first complete list have entered. */
  ready?(): void;
}

/**
 * Follows the namespaces whose labels match a selector, and reports which enter and leave. Thousands are spread over many turns
 * of the event loop.
 */
export class NamespaceInformer implements Subscriber {
  readonly id: string;
  /** Nothing is persisted over a restart: namespaces are few. */
  readonly resumeFrom = undefined;
  /** The source it follows. */
  readonly spec: SourceSpec;
  private readonly options: NamespaceScopeOptions;
  private readonly current = new Set<string>();
  private readonly turns: ObjectTurns;
  private readonly watch: Watch;
  private listed = false;

  constructor(options: NamespaceScopeOptions) {
    this.id = options.id;
    this.options = options;
    const { watches, labelSelector, clock } = options;
    this.turns = new ObjectTurns(clock);
    this.spec = { apiVersion: "v1", kind: "Namespace", labelSelector, representation: "metadata" };
    this.watch = watches.subscribe(this.spec, this);
  }

  /** Namespaces in scope now. */
  get namespaces(): readonly string[] {
    return [...this.current];
  }

  get congested(): Promise<void> | undefined {
    return this.turns.busy;
  }

  change(change: Change): void {
    const { name } = change.meta;
    if (!this.concerns(name)) return;
    if (change.type === "Deleted") this.turns.queue(() => this.remove(name, leaveReason(change)));
    else this.turns.queue(() => this.add(name));
  }

  bookmark(): void {}

  list(): ListReceiver {
    const found = new Set<string>();
    return {
      item: (change) => {
        if (this.concerns(change.meta.name)) found.add(change.meta.name);
      },
      end: () => {
        if (!this.options.believes([...found])) return "held";
        this.turns.run(this.take(found));
        return "counted";
      },
      abort: () => {},
    };
  }

  /** Stops following; namespaces in scope are not reported as left. */
  async close(): Promise<void> {
    this.turns.cancel();
    await this.watch.close();
  }

  private *take(found: ReadonlySet<string>): Generator<void> {
    const { listed } = this;
    this.listed = true;
    for (const name of this.current) {
      if (found.has(name)) continue;
      this.remove(name, "unselected");
      yield;
    }
    if (!listed) this.options.begin?.([...found]);
    for (const name of found) {
      yield;
      this.add(name);
    }
    if (!listed) this.options.ready?.();
  }

  private concerns(name: string): boolean {
    return this.options.concerns?.(name) ?? true;
  }

  private add(name: string): void {
    if (this.current.has(name)) return;
    this.current.add(name);
    this.options.enter(name);
  }

  private remove(name: string, reason: LeaveReason): void {
    if (this.current.delete(name)) this.options.leave(name, reason);
  }
}

/**
 * A namespace that stops matching the selector is reported as DELETED as well; only a real deletion has a deletion time in the
 * metadata.
 */
function leaveReason(change: Change): LeaveReason {
  const object = JSON.parse(change.body.toString("utf8")) as { metadata?: { deletionTimestamp?: unknown } };
  return object.metadata?.deletionTimestamp === undefined ? "unselected" : "deleted";
}
