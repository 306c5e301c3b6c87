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
import type { Applicant } from "./list/listing.ts";
import type { NewestVersions } from "./list/newest-versions.ts";
import { RewindCheck } from "./rewind-check.ts";
import type { Rewinds } from "./rewinds.ts";
import { InformerHealth } from "./stream/informer-health.ts";
import { Liveness } from "./stream/liveness.ts";
import { causesOf, type RetryCause } from "./stream/retry-state.ts";
import type { Semaphore } from "./stream/semaphore.ts";
import { ServedKind } from "./stream/served-kind.ts";
import { type Brought, type StaleSuspicion, Stream, type StreamParts } from "./stream/stream.ts";

/** What a source is given; all sources of a cluster have the same. */
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

/** A watch that runs. */
export interface RunningStream {
  readonly resource: Resource;
  /** Undefined: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string | undefined;
  /** The one name that it asks for; undefined: any. */
  readonly name: string | undefined;
  /** Ends it and begins it again where it was: the server may refuse it by now. */
  readonly reconnect: () => void;
}

/**
 * What exists and what changes, for all who listen to the same. Who has a position is in a stream, who needs a list is with
 * the lister, and everybody is in one of the two. This decides who goes where; its parts decide how they get on.
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
  /** The server's newest resourceVersion, as it was last asked. */
  private serverAt: ResourceVersion | undefined;
  /** What is to end before the source has: streams that were dissolved, connections that nobody needs. */
  private readonly ending = new Set<Promise<unknown>>();
  private readonly stopping = new AbortController();
  /** Those who have stepped aside, and will come back. */
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
      resumed: (resource) => this.doubtful(resource, "resumed"),
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
      doubtful: (resource, why) => this.doubtful(resource, why),
    };
  }

  /** Adds a listener: to a stream at its position, or without one to the next list. */
  subscribe(subscriber: Subscriber): void {
    if (this.kind.isAbsent) subscriber.kindIsMissing?.();
    if (this.serverAt !== undefined) subscriber.serverIsAt?.(this.serverAt);
    const at = subscriber.resumeFrom;
    if (at === undefined) {
      this.lister.ask([this.applicant(subscriber, undefined, "initial")]);
      return;
    }
    // A stream is silent for it until its position comes, which may be one that will never come.
    const ahead = [...this.streams].every((stream) => stream.at === undefined || isNewer(at, stream.at));
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

  /** Removes a listener. @returns how many are left; the others notice nothing. */
  leave(subscriber: Subscriber): number {
    this.lister.leave(subscriber);
    for (const stream of [...this.streams]) {
      stream.leave(subscriber);
      if (stream.size === 0) this.dissolve(stream);
    }
    if (this.streams.size === 0) this.health.forgive();
    return this.size;
  }

  /** Ends the source for good: its connections are closed and no timer is left when this resolves. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error("the source stops"));
    for (const stream of [...this.streams]) this.dissolve(stream);
    await Promise.all([...this.ending, this.lister.stop(), this.rewind.stop()]);
    this.health.stop();
  }

  /** The streams that run. */
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
    for (const { subscriber } of this.lister.applicants) yield subscriber;
  }

  /** The newest position that anybody has, or resourceVersion that anybody knows of: no server's newest is older. */
  private get newest(): ResourceVersion | undefined {
    let newest = this.health.received;
    const consider = (version: ResourceVersion | undefined) => {
      if (version !== undefined && (newest === undefined || isNewer(version, newest))) newest = version;
    };
    for (const stream of this.streams) {
      consider(stream.at);
      for (const at of stream.positions) consider(at);
    }
    for (const { at } of this.lister.applicants) consider(at);
    for (const { newestKnown } of this.subscribers()) consider(newestKnown);
    return newest;
  }

  private applicant(subscriber: Subscriber, at: ResourceVersion | undefined, reason: ListReason): Applicant {
    return { subscriber, at, reason, dueAt: this.context.clock.monotonic() };
  }

  /** Each to a stream that it does not disturb, or to one of its own, which joins the others when it has caught up. */
  private place(placed: readonly Placed[]): void {
    for (const each of placed) {
      const stream = [...this.streams].find((stream) => stream.suits(each.at));
      if (stream) stream.join([each]);
      else this.streams.add(new Stream(this.streamParts, [each]));
    }
  }

  /** A list is complete: whom it was for goes on where it ends. */
  private listed({ subscribers, at, brought }: Handover): void {
    if (this.covers(at)) this.rewind.due = false;
    if (![...this.streams].some((stream) => stream.at !== undefined)) this.health.received = at;
    const placed = subscribers.map((subscriber) => ({ subscriber, at }));
    const stream = [...this.streams].find((stream) => stream.at !== undefined && stream.suits(at));
    if (stream || !brought || placed.length === 0) {
      if (brought) this.close(brought);
      if (stream) stream.join(placed);
      else this.place(placed);
      return;
    }
    const begun = new Stream(this.streamParts, placed);
    this.streams.add(begun);
    begun.adopt(at, brought);
  }

  private close({ connection }: Brought): void {
    connection.end({ type: "closed", by: "join" });
    this.await(connection.ended);
  }

  /** Something ends by itself, but not before the source has. */
  private await(work: Promise<unknown>): void {
    const ended: Promise<unknown> = work.finally(() => this.ending.delete(ended));
    this.ending.add(ended);
  }

  private covers(at: ResourceVersion): boolean {
    const { newest } = this;
    return newest === undefined || isUpTo(newest, at);
  }

  /** A stream runs: it joins another that is no further on, and catches up with one that is. */
  private runs(stream: Stream): void {
    if (stream.size === 0) this.dissolve(stream);
    for (const other of this.streams) {
      if (stream.at === undefined) return;
      if (other === stream || other.at === undefined) continue;
      if (isUpTo(other.at, stream.at)) this.join(stream, other);
      else if (isUpTo(stream.at, other.at)) stream.target = other;
    }
  }

  /** Before a stream connects: another that runs may serve its members as well, and those that wait may share its connection. */
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
      expired.map(({ subscriber, at }) => this.applicant(subscriber, at, "relist")),
      setback,
    );
    for (const stream of [...this.streams]) if (stream.size === 0) this.dissolve(stream);
  }

  /** Everybody who is in a stream needs a list. */
  private giveUpStreams(reason: ListReason): void {
    const placed = [...this.streams].flatMap((stream) => this.dissolve(stream));
    this.lister.ask(placed.map(({ subscriber, at }) => this.applicant(subscriber, at, reason)));
  }

  private async removed(): Promise<void> {
    const { newest } = this;
    if (newest === undefined) return;
    this.giveUpStreams("relist");
    // Where the source stops meanwhile, nobody is to be told.
    await this.lister.removed(newest).catch(() => {});
  }

  private rewound(cause: RetryCause): void {
    this.context.rewinds.note(this.spec);
    this.lister.explain(cause);
    this.giveUpStreams("rv-rewind");
    this.lister.rewind();
    // What was received, and said, is of a time that is no more.
    this.health.received = undefined;
    this.serverAt = undefined;
    for (const subscriber of [...this.subscribers(), ...this.aside]) subscriber.rewound?.();
  }

  private doubtful(resource: Resource, why: StaleSuspicion): void {
    if (why === "broken") this.rewind.due = true;
    else if (why !== "resumed" || this.rewind.due) this.rewind.ask(resource);
  }

  private answered(version: ResourceVersion): void {
    this.serverAt = version;
    for (const subscriber of [...this.subscribers()]) subscriber.serverIsAt?.(version);
  }
}
