import { isNewer, isUpTo } from "../resource-version.ts";
import type { Mover } from "./audience.ts";
import { ListSlots } from "./list-slots.ts";
import type { SourceStatus } from "./observer.ts";
import { Source, type SourceContext, type Stream } from "./source.ts";
import { type SourceSpec, sourceKey } from "./source-spec.ts";
import type { Subscriber } from "./subscriber.ts";

/** One subscriber's place at a source. */
export interface Watch {
  /** Leaves; the last to leave ends the source and waits until its connection is closed. */
  close(): Promise<void>;
}

/**
 * The sources of one cluster: whoever needs the same list and watch shares it. Those who have no position yet, or one that
 * has expired, list at a source of their own, so that the others keep their history; it joins theirs when both stream.
 */
export class Watches {
  private readonly context: SourceContext;
  private readonly sources = new Map<string, Source[]>();
  /** Of sources that joined others. */
  private readonly stopping = new Set<Promise<void>>();
  private closed = false;

  /** At most four lists run at once over all sources, unless `listSlots` says otherwise. */
  constructor(context: Omit<SourceContext, "listSlots" | "streaming"> & { readonly listSlots?: ListSlots }) {
    const streaming = (source: Source) => this.streaming(source);
    this.context = { ...context, streaming, listSlots: context.listSlots ?? new ListSlots() };
  }

  /** Starts to hand a source's list and changes to `subscriber`, beginning in a later turn of the event loop. */
  subscribe(spec: SourceSpec, subscriber: Subscriber): Watch {
    let left = false;
    const join = () => {
      if (!left && !this.closed) this.place(spec, { subscriber, at: undefined });
    };
    subscriber.placed?.({
      // In a turn of its own: it may be asked for while a change is handed out.
      stepAside: (until) => setImmediate(() => void this.leave(spec, subscriber).then(() => until.then(join))),
    });
    join();
    const close = () => {
      left = true;
      return this.leave(spec, subscriber);
    };
    return { close };
  }

  /** The streams that run. */
  streams(): Stream[] {
    return this.all().flatMap((source) => source.stream ?? []);
  }

  /** How every source stands. */
  status(): SourceStatus[] {
    return this.all().map((source) => source.status());
  }

  /** Ends every source. */
  async close(): Promise<void> {
    this.closed = true;
    const sources = this.all();
    this.sources.clear();
    await Promise.all([...this.stopping, ...sources.map((source) => source.stop())]);
  }

  private all(): Source[] {
    return [...this.sources.values()].flat();
  }

  private alike(spec: SourceSpec): readonly Source[] {
    return this.sources.get(sourceKey(spec)) ?? [];
  }

  /** To a source that stands as it does: at the beginning, or not. */
  private place(spec: SourceSpec, mover: Mover): void {
    const begins = mover.expired || (mover.at ?? mover.subscriber.resumeFrom) === undefined;
    const alike = this.alike(spec);
    let source = alike.find((each) => each.begins === begins);
    if (!source) {
      source = new Source(spec, this.context);
      this.sources.set(sourceKey(spec), [...alike, source]);
    }
    source.join(mover);
  }

  /** Of two sources that stream the same, the one that is further on joins the other, whose stream brings all it needs. */
  private streaming(source: Source): void {
    const { spec } = source;
    for (const late of source.beginners()) this.place(spec, late);
    for (const other of this.alike(spec)) {
      const [mine, others] = [source.streamsAt, other.streamsAt];
      if (other === source || mine === undefined || others === undefined) continue;
      // Positions without an order: each keeps its own stream.
      if (!isUpTo(mine, others) && !isUpTo(others, mine)) continue;
      const [behind, ahead] = isNewer(others, mine) ? [source, other] : [other, source];
      for (const mover of ahead.moveOut()) behind.join(mover);
      this.drop(ahead);
      if (ahead === source) return;
    }
  }

  private drop(source: Source): void {
    this.forget(source);
    const stopped: Promise<void> = source.stop().finally(() => this.stopping.delete(stopped));
    this.stopping.add(stopped);
  }

  private forget(source: Source): void {
    const left = this.alike(source.spec).filter((each) => each !== source);
    if (left.length > 0) this.sources.set(sourceKey(source.spec), left);
    else this.sources.delete(sourceKey(source.spec));
  }

  private async leave(spec: SourceSpec, subscriber: Subscriber): Promise<void> {
    const source = this.alike(spec).find((each) => each.has(subscriber));
    if (!source || source.leave(subscriber) > 0) return;
    this.forget(source);
    await source.stop();
  }
}
