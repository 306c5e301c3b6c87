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

/** The sources of one cluster: whoever needs the same list and watch shares it. */
export class Watches {
  private readonly context: SourceContext;
  private readonly sources = new Map<string, Source>();

  /** At most four lists run at once over all sources, unless `listSlots` says otherwise. */
  constructor(context: Omit<SourceContext, "listSlots"> & { readonly listSlots?: ListSlots }) {
    this.context = { ...context, listSlots: context.listSlots ?? new ListSlots() };
  }

  /** Starts to hand a source's list and changes to `subscriber`, beginning in a later turn of the event loop. */
  subscribe(spec: SourceSpec, subscriber: Subscriber): Watch {
    const key = sourceKey(spec);
    let source = this.sources.get(key);
    if (!source) {
      source = new Source(spec, this.context);
      this.sources.set(key, source);
    }
    source.join(subscriber);
    return { close: () => this.leave(key, source, subscriber) };
  }

  /** The streams that run. */
  streams(): Stream[] {
    return [...this.sources.values()].flatMap((source) => source.stream ?? []);
  }

  /** How every source stands. */
  status(): SourceStatus[] {
    return [...this.sources.values()].map((source) => source.status());
  }

  /** Ends every source. */
  async close(): Promise<void> {
    const sources = [...this.sources.values()];
    this.sources.clear();
    await Promise.all(sources.map((source) => source.stop()));
  }

  private async leave(key: string, source: Source, subscriber: Subscriber): Promise<void> {
    if (source.leave(subscriber) > 0) return;
    if (this.sources.get(key) === source) this.sources.delete(key);
    await source.stop();
  }
}
