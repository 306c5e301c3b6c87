import { type Clock, pause } from "../base/clock.ts";
import type { RunningStream } from "../informer/informer.ts";
import type { Informers } from "../informer/informers.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { missingNeeds } from "./missing.ts";
import { absentNamespaces } from "./namespaces.ts";
import type { Need } from "./scoped-rule.ts";

/** Interval of the check, in milliseconds: a revoked right is reported within 20 s. */
const everyMs = 10_000;

interface RevokedWatchesParts {
  /** The runtime's own connection, whose account watches. */
  readonly transport: KubeTransport;
  readonly watches: Pick<Informers, "streams">;
  readonly clock: Clock;
}

/**
 * Finds watches whose right was revoked. An API server checks rights only when a stream begins, so the watch would continue for
 * minutes. A watch that is no longer allowed is restarted, and the server's own refusal then gives the reason. In a namespace
 * that is being deleted the rights are removed before the objects: the old stream is kept, because it reports the deletions.
 */
export class RevokedWatches {
  private readonly parts: RevokedWatchesParts;
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(parts: RevokedWatchesParts) {
    this.parts = parts;
    this.running = this.run();
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await pause(this.parts.clock, everyMs, signal).catch(() => undefined);
      await this.look(signal).catch(() => undefined); // nobody answers, which the informers notice themselves
    }
  }

  private async look(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { transport, watches } = this.parts;
    const streams = Map.groupBy(watches.streams(), (stream) => JSON.stringify(needOf(stream)));
    const needs = [...streams.values()].flatMap(([first]) => (first ? [needOf(first)] : []));
    const missing = await missingNeeds(transport, needs, signal);
    const named = new Set(missing.flatMap(({ namespace }) => namespace ?? []));
    const absent = await absentNamespaces(transport, named, signal);
    for (const need of missing) {
      if (need.namespace !== undefined && absent.has(need.namespace)) continue;
      for (const { reconnect } of streams.get(JSON.stringify(need)) ?? []) reconnect();
    }
  }
}

const needOf = ({ resource: { group, plural }, namespace, name }: RunningStream): Need => ({
  group,
  resource: plural,
  verb: "watch",
  name,
  namespace,
});
