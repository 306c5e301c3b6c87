import type { SourceStatus } from "./fanout/observer.ts";
import { type SourceSpec, sourceKey } from "./fanout/source-spec.ts";
import type { Subscriber } from "./fanout/subscriber.ts";
import { Informer, type InformerContext, type RunningStream } from "./informer.ts";
import { ListSemaphore } from "./list/list-semaphore.ts";
import { NewestVersions } from "./list/newest-versions.ts";
import { Rewinds } from "./rewind-check.ts";
import { Semaphore } from "./stream/semaphore.ts";

/** One subscriber's place at an informer. */
export interface Watch {
  /** Removes the subscriber. If it is the last, stops the source and waits until its connection is closed. */
  close(): Promise<void>;
}

/**
 * The informers of one cluster: subscribers with the same list and watch share one. At most four lists run at once over all of
 * them.
 */
export class Informers {
  private readonly context: InformerContext;
  private readonly sources = new Map<string, Informer>();
  private closed = false;

  constructor(options: Pick<InformerContext, "transport" | "discovery" | "clock" | "random" | "observer">) {
    const listSlots = new ListSemaphore();
    const newestVersions = new NewestVersions({ ...options, listSlots });
    this.context = { ...options, listSlots, newestVersions, turnstile: new Semaphore(), rewinds: new Rewinds() };
  }

  /** Starts to deliver a source's list and changes to `subscriber`, beginning in a later turn of the event loop. */
  subscribe(spec: SourceSpec, subscriber: Subscriber): Watch {
    const key = sourceKey(spec);
    let left = false;
    const join = () => {
      if (left || this.closed) return;
      const source = this.sources.get(key) ?? new Informer(spec, this.context);
      this.sources.set(key, source);
      source.aside.delete(subscriber);
      source.subscribe(subscriber);
    };
    const stepAside = async (room: () => Promise<void>) => {
      const gone = this.leave(key, subscriber);
      if (!left) this.sources.get(key)?.aside.add(subscriber);
      await gone;
      await room();
      join();
    };
    // Deferred to another turn of the event loop, because it may be called while a change is delivered.
    subscriber.placed?.({ stepAside: (room) => setImmediate(() => void stepAside(room)) });
    join();
    const close = () => {
      left = true;
      return this.leave(key, subscriber);
    };
    return { close };
  }

  /** Returns how often sources of a kind have found that the cluster's state went back. */
  rewindsOf(kind: Pick<SourceSpec, "apiVersion" | "kind">): number {
    return this.context.rewinds.of(kind);
  }

  /** Returns the running streams. */
  streams(): RunningStream[] {
    return [...this.sources.values()].flatMap((source) => source.running());
  }

  /** Returns the status of every source. */
  status(): SourceStatus[] {
    return [...this.sources.values()].map((source) => source.status());
  }

  /** Stops every source. */
  async close(): Promise<void> {
    this.closed = true;
    const sources = [...this.sources.values()];
    this.sources.clear();
    await Promise.all(sources.map((source) => source.stop()));
  }

  private async leave(key: string, subscriber: Subscriber): Promise<void> {
    const source = this.sources.get(key);
    source?.aside.delete(subscriber);
    if (!source?.has(subscriber) || source.leave(subscriber) > 0) return;
    this.sources.delete(key);
    await source.stop();
  }
}
