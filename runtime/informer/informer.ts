import type { Clock, Random } from "../base/clock.ts";
import { isNewer, isUpTo, type ResourceVersion } from "../base/resource-version.ts";
import type { Discovery } from "../kube/discovery.ts";
import { requiredName } from "../kube/field-selector.ts";
import type { Resource } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Placed } from "./fanout/members.ts";
import type { SourceStatus, WatchObserver } from "./fanout/observer.ts";
import { SkipSet } from "./fanout/skip-set.ts";
import type { SourceSpec } from "./fanout/source-spec.ts";
import type { ListReason, Subscriber } from "./fanout/subscriber.ts";
import type { ListSemaphore } from "./list/list-semaphore.ts";
import { type Handover, Lister } from "./list/lister.ts";
import type { ListRequester } from "./list/listing.ts";
import type { NewestVersions } from "./list/newest-versions.ts";
import { RewindCheck, type Rewinds } from "./rewind-check.ts";
import { InformerHealth } from "./stream/informer-health.ts";
import { Liveness } from "./stream/liveness.ts";
import { causesOf, type RetryCause } from "./stream/retry-state.ts";
import type { Semaphore } from "./stream/semaphore.ts";
import { ServedKind } from "./stream/served-kind.ts";
import { type OpenStream, type StaleSuspicion, Stream, type StreamParts } from "./stream/stream.ts";

/** Dependencies of an informer; all informers of a cluster share them. */
export interface InformerContext {
  readonly transport: KubeTransport;
  readonly discovery: Discovery;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: WatchObserver;
  readonly listSlots: ListSemaphore;
  readonly turnstile: Semaphore;
  readonly newestVersions: NewestVersions;
  readonly rewinds: Rewinds;
}

/** A running watch. */
export interface RunningStream {
  readonly resource: Resource;
  /** `undefined`: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string | undefined;
  /** The one object name that it requests; `undefined`: any. */
  readonly name: string | undefined;
  /** Closes the watch and opens it again at the same position; the server may refuse it by now. */
  readonly reconnect: () => void;
}

/**
 * One list and watch shared by subscribers. A subscriber with a position is in a stream; one that needs a list is with the
 * lister; each is in exactly one of the two. This class assigns the subscribers; streams and lister do the work.
 */
export class Informer {
  readonly spec: SourceSpec;
  private readonly context: InformerContext;
  private readonly health: InformerHealth;
  private readonly kind: ServedKind;
  private readonly lister: Lister;
  private readonly rewind: RewindCheck;
  private readonly streamParts: StreamParts;
  private readonly streams = new Set<Stream>();
  /** The server's newest resourceVersion in its last answer. */
  private serverAt: ResourceVersion | undefined;
  /** Work that must end before the source does: dissolved streams and connections that are no longer needed. */
  private readonly ending = new Set<Promise<unknown>>();
  private readonly stopping = new AbortController();
  /** Suspended subscribers, which will join again. */
  readonly aside = new Set<Subscriber>();

  constructor(spec: SourceSpec, context: InformerContext) {
    this.spec = spec;
    this.context = context;
    const { signal } = this.stopping;
    const health = new InformerHealth(spec, context.clock, context.observer);
    this.health = health;
    const newest = () => this.newest;
    this.kind = new ServedKind({
      ...context,
      spec,
      health,
      signal,
      known: () => this.newest !== undefined,
      notServed: () => {
        for (const subscriber of [...this.subscribers()]) subscriber.kindIsMissing?.();
      },
      removed: () => this.removed(),
    });
    const shared = { ...context, spec, health, liveness: new Liveness(context.random), kind: this.kind };
    this.lister = new Lister({
      ...shared,
      signal,
      newest,
      resumed: (resource) => this.suspectStale(resource, "resumed"),
      listed: (handover) => this.listed(handover),
      rewound: (cause) => this.rewound(cause),
    });
    this.rewind = new RewindCheck({
      ...context,
      spec,
      signal,
      newest,
      lists: () => this.lister.lists,
      relisting: () => this.lister.rewinds,
      rewound: () => {
        health.reconnected("rewind");
        this.rewound(causesOf({ type: "closed", by: "rewind" }));
      },
      answered: (version) => this.answered(version),
    });
    this.streamParts = {
      ...shared,
      unwanted: new SkipSet(context.clock),
      sinceListMs: () => context.clock.monotonic() - this.lister.listedAtMs,
      moved: (stream) => this.moved(stream),
      runs: (stream) => this.runs(stream),
      caughtUp: (stream, target) => this.join(stream, target),
      place: (placed) => this.place(placed),
      gone: (expired, setback) => this.gone(expired, setback),
      suspectStale: (resource, why) => this.suspectStale(resource, why),
    };
  }

  /** Adds a subscriber: to a stream at its position, or to the next list if it has no position. */
  subscribe(subscriber: Subscriber): void {
    if (this.kind.isAbsent) subscriber.kindIsMissing?.();
    if (this.serverAt !== undefined) subscriber.serverIsAt?.(this.serverAt);
    const at = subscriber.resumeFrom;
    if (at === undefined) {
      this.lister.ask([this.requester(subscriber, undefined, "initial")]);
      return;
    }
    // A stream delivers nothing to the subscriber until it reaches its position, which may be one that never arrives. The position
    // may also be behind what the subscriber knows, and that may have been undone.
    const { newestKnown = at } = subscriber;
    const known = isNewer(newestKnown, at) ? newestKnown : at;
    const ahead = [...this.streams].every((stream) => stream.at === undefined || isNewer(known, stream.at));
    this.rewind.due ||= ahead;
    this.place([{ subscriber, at }]);
    const { resource } = this.kind;
    if (this.rewind.due && resource && [...this.streams].some((stream) => stream.at !== undefined)) {
      this.rewind.ask(resource);
    }
  }

  has(subscriber: Subscriber): boolean {
    for (const each of this.subscribers()) if (each === subscriber) return true;
    return false;
  }

  /** Removes a subscriber. @returns how many are left; they are not affected. */
  leave(subscriber: Subscriber): number {
    this.lister.leave(subscriber);
    for (const stream of [...this.streams]) {
      stream.leave(subscriber);
      if (stream.size === 0) this.dissolve(stream);
    }
    if (this.streams.size === 0) this.health.forgive();
    return this.size;
  }

  /** Stops the source for good. Resolves when its connections are closed and no timer is left. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error("the source stops"));
    for (const stream of [...this.streams]) this.dissolve(stream);
    await Promise.all([...this.ending, this.lister.stop(), this.rewind.stop()]);
    this.health.stop();
  }

  /** Returns the running streams. */
  running(): RunningStream[] {
    return [...this.streams].flatMap(({ connected }) => {
      if (!connected) return [];
      const { resource, end } = connected;
      const { namespace, fieldSelector = "" } = this.spec;
      const reconnect = () => end({ type: "closed", by: "revoked" });
      return [{ resource, namespace, name: requiredName(fieldSelector), reconnect }];
    });
  }

  status(): SourceStatus {
    for (const { lastByteAt } of this.streams) {
      if (lastByteAt !== undefined) this.health.lastByteAt = Math.max(lastByteAt, this.health.lastByteAt ?? 0);
    }
    const leftOut = Math.max(0, ...[...this.streams].map((stream) => stream.leftOut));
    return { ...this.health.status(this.size), ...(leftOut > 0 && { leftOut }) };
  }

  private get size(): number {
    let size = this.lister.size;
    for (const stream of this.streams) size += stream.size;
    return size;
  }

  private *subscribers(): Iterable<Subscriber> {
    for (const stream of this.streams) yield* stream.subscribers();
    for (const { subscriber } of this.lister.requesters) yield subscriber;
  }

  /** The newest resourceVersion that any subscriber has or knows; no current answer of a server can be older. */
  private get newest(): ResourceVersion | undefined {
    let newest = this.health.received;
    const consider = (version: ResourceVersion | undefined) => {
      if (version !== undefined && (newest === undefined || isNewer(version, newest))) newest = version;
    };
    for (const stream of this.streams) {
      consider(stream.at);
      for (const at of stream.positions) consider(at);
    }
    for (const { at } of this.lister.requesters) consider(at);
    for (const { newestKnown } of this.subscribers()) consider(newestKnown);
    return newest;
  }

  private requester(subscriber: Subscriber, at: ResourceVersion | undefined, reason: ListReason): ListRequester {
    return { subscriber, at, reason, dueAt: this.context.clock.monotonic() };
  }

  /** Assigns each to a stream that it does not disturb, or to a new stream, which joins the others when it has caught up. */
  private place(placed: readonly Placed[]): void {
    for (const each of placed) {
      const stream = [...this.streams].find((stream) => stream.suits(each.at));
      if (stream) stream.join([each]);
      else this.streams.add(new Stream(this.streamParts, [each]));
    }
  }

  /** Handles a complete list: its subscribers continue from where it ends. */
  private listed({ subscribers, at, openStream }: Handover): void {
    const { resource } = this.kind;
    if (this.covers(at)) this.rewind.due = false;
    else if (this.rewind.due && resource) this.rewind.ask(resource);
    if (![...this.streams].some((stream) => stream.at !== undefined)) this.health.received = at;
    const placed = subscribers.map((subscriber) => ({ subscriber, at }));
    const stream = [...this.streams].find((stream) => stream.at !== undefined && stream.suits(at));
    if (stream || !openStream || placed.length === 0) {
      if (openStream) this.close(openStream);
      if (stream) stream.join(placed);
      else this.place(placed);
      return;
    }
    const begun = new Stream(this.streamParts, placed);
    this.streams.add(begun);
    begun.adopt(at, openStream);
  }

  private close({ connection }: OpenStream): void {
    connection.end({ type: "closed", by: "join" });
    this.await(connection.ended);
  }

  /** Tracks work that ends by itself, but must end before the source does. */
  private await(work: Promise<unknown>): void {
    const ended: Promise<unknown> = work.finally(() => this.ending.delete(ended));
    this.ending.add(ended);
  }

  private covers(at: ResourceVersion): boolean {
    const { newest } = this;
    return newest === undefined || isUpTo(newest, at);
  }

  /** Handles a running stream: joins it with another that is not further on, and lets it catch up with one that is. */
  private runs(stream: Stream): void {
    if (stream.size === 0) this.dissolve(stream);
    for (const other of this.streams) {
      if (stream.at === undefined) return;
      if (other === stream || other.at === undefined) continue;
      if (isUpTo(other.at, stream.at)) this.join(stream, other);
      else if (isUpTo(stream.at, other.at)) stream.target = other;
    }
  }

  /**
   * Called before a stream connects. A running stream may serve its members as well, and waiting streams may share its
   * connection.
   */
  private moved(stream: Stream): boolean {
    for (const other of this.streams) {
      if (other === stream) continue;
      if (other.at === undefined) {
        if (other.waits && stream.suitsAll(other)) this.join(other, stream);
      } else if (other.suitsAll(stream)) {
        this.join(stream, other);
        return true;
      }
    }
    return false;
  }

  private join(stream: Stream, other: Stream): void {
    stream.release();
    other.join(this.dissolve(stream));
  }

  private dissolve(stream: Stream): readonly Placed[] {
    if (!this.streams.delete(stream)) return [];
    const { placed, stopped } = stream.dissolve();
    for (const other of this.streams) if (other.target === stream) other.target = undefined;
    this.await(stopped);
    return placed;
  }

  private gone(expired: readonly Placed[], setback: RetryCause | undefined): void {
    this.context.observer.gone(this.spec);
    this.lister.ask(
      expired.map(({ subscriber, at }) => this.requester(subscriber, at, "relist")),
      setback,
    );
    for (const stream of [...this.streams]) if (stream.size === 0) this.dissolve(stream);
  }

  /** Moves all members of streams to the lister. */
  private giveUpStreams(reason: ListReason): void {
    const placed = [...this.streams].flatMap((stream) => this.dissolve(stream));
    this.lister.ask(placed.map(({ subscriber, at }) => this.requester(subscriber, at, reason)));
  }

  private async removed(): Promise<void> {
    const { newest } = this;
    if (newest === undefined) return;
    this.giveUpStreams("relist");
    // If the source stops meanwhile, no subscriber needs the notice.
    await this.lister.removed(newest).catch(() => {});
  }

  private rewound(cause: RetryCause): void {
    this.context.rewinds.note(this.spec);
    this.lister.explain(cause);
    this.giveUpStreams("rv-rewind");
    this.lister.rewind();
    // The received resourceVersion, and what the server said, belong to the state that was undone.
    this.health.received = undefined;
    this.serverAt = undefined;
    for (const subscriber of [...this.subscribers(), ...this.aside]) subscriber.rewound?.();
  }

  private suspectStale(resource: Resource, why: StaleSuspicion): void {
    if (why === "broken") this.rewind.due = true;
    else if (why !== "resumed" || this.rewind.due) this.rewind.ask(resource);
  }

  private answered(version: ResourceVersion): void {
    this.serverAt = version;
    for (const subscriber of [...this.subscribers()]) subscriber.serverIsAt?.(version);
  }
}
