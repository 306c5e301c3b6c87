import type { Clock, Random, Timer } from "../../base/clock.ts";
import { isNewer, isUpTo, noResourceVersion, type ResourceVersion } from "../../base/resource-version.ts";
import type { Resource } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { Members, type Placed } from "../fanout/members.ts";
import type { WatchObserver } from "../fanout/observer.ts";
import type { SkipSet } from "../fanout/skip-set.ts";
import type { SourceSpec } from "../fanout/source-spec.ts";
import type { Subscriber } from "../fanout/subscriber.ts";
import type { Change } from "../scan/change.ts";
import { Connection, type Sink } from "./connection.ts";
import { type Ending, endingOf } from "./failure.ts";
import type { HealthReporter, InformerHealth } from "./informer-health.ts";
import { type ConnectionStats, type Liveness, wasCutShort } from "./liveness.ts";
import { causesOf, type RetryCause, RetryState } from "./retry-state.ts";
import type { Semaphore } from "./semaphore.ts";
import type { ServedKind } from "./served-kind.ts";

/**
 * How long a watch must last to count as accepted, in milliseconds: an API server accepts a watch whose history is gone, and
 * reports that at once in its first event.
 */
const acceptedMs = 1000;

/** A running connection, and what it has delivered so far. */
export interface OpenStream {
  readonly connection: Connection;
  readonly resource: Resource;
  /** Live changes, in order. */
  readonly held: readonly Change[];
  /** A bookmark received after them. */
  readonly marked: ResourceVersion | undefined;
}

/** Why the server's newest resourceVersion is or will be requested. */
export type StaleSuspicion = "resumed" | "older-bookmark" | "silent" | "broken";

/** The parts that an informer's lister and its streams share. */
export interface InformerParts {
  readonly spec: SourceSpec;
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: WatchObserver;
  readonly health: InformerHealth;
  readonly liveness: Liveness;
  readonly kind: ServedKind;
  readonly turnstile: Semaphore;
}

export interface StreamParts extends InformerParts {
  readonly unwanted: SkipSet;
  /** Milliseconds since the source's last complete list. */
  sinceListMs(): number;
  /** Whether another stream has taken its members, so that it need not connect. */
  moved(stream: Stream): boolean;
  /** Called when the stream runs and serves all of its members. */
  runs(stream: Stream): void;
  /** Called when the stream has reached the position of the stream that it is catching up with. */
  caughtUp(stream: Stream, target: Stream): void;
  /** Called with members whose positions are before the start of the connection. */
  place(placed: readonly Placed[]): void;
  /**
   * Called with members whose positions are no longer in the server's history. @param setback why their list waits as after a
   * failure.
   */
  gone(expired: readonly Placed[], setback: RetryCause | undefined): void;
  suspectStale(resource: Resource, why: StaleSuspicion): void;
}

/**
 * A watch that is kept up as long as it has members. It follows changes from their oldest position, and resumes at its position
 * after every failure. It never lists: a member whose history is gone is removed.
 */
export class Stream implements Sink {
  /** The stream that this one is behind, and will join. */
  target: Stream | undefined;
  private readonly parts: StreamParts;
  private readonly members = new Members();
  private readonly voice: HealthReporter;
  private readonly setbacks: RetryState;
  private readonly stopping = new AbortController();
  private connection: Connection | undefined;
  private resource: Resource | undefined;
  /** Start position of the connection. */
  private from: ResourceVersion = noResourceVersion;
  /**
   * The resourceVersion up to which the connection has delivered everything; `undefined` until it is known to serve its members.
   */
  private received: ResourceVersion | undefined;
  /** Members whose positions are gone. They wait until the same is known of every other member. */
  private expired: Placed[] = [];
  private setback: RetryCause | undefined;
  private readonly running: Promise<void>;

  constructor(parts: StreamParts, placed: readonly Placed[]) {
    this.parts = parts;
    this.voice = parts.health.voice();
    this.setbacks = new RetryState({ ...parts, voice: this.voice, signal: this.stopping.signal });
    for (const each of placed) this.members.join(each, false);
    this.running = this.run();
  }

  /**
   * Continues with a connection that runs from `from`, the position of all members. Must be called before the event loop's next
   * turn.
   */
  adopt(from: ResourceVersion, { connection, resource, held, marked }: OpenStream): void {
    const { signal } = this.stopping;
    this.resource = resource;
    this.connection = connection;
    this.from = from;
    connection.handTo(this);
    this.accept();
    for (const change of held) if (!signal.aborted) this.change(change);
    if (marked !== undefined && held.length > 0 && !signal.aborted) this.bookmark(marked);
  }

  get size(): number {
    return this.members.size + this.expired.length;
  }

  /** The resourceVersion up to which everything was received; `undefined` while it does not run. */
  get at(): ResourceVersion | undefined {
    return this.received;
  }

  /** Number of namespaces that the server was asked to leave out. */
  get leftOut(): number {
    return this.connection?.without.size ?? 0;
  }

  /** Time of the connection's last byte. */
  get lastByteAt(): number | undefined {
    return this.connection?.lastByteAt;
  }

  /** The connection; `undefined` while it is not connected. */
  get connected(): { readonly resource: Resource; readonly end: (ending: Ending) => void } | undefined {
    const { connection, resource } = this;
    if (!connection || !resource || this.voice.state !== "watching") return undefined;
    return { resource, end: (ending) => connection.end(ending) };
  }

  /** Whether it can serve the position without being disturbed. */
  suits(at: ResourceVersion): boolean {
    if (this.received !== undefined) return isUpTo(this.received, at);
    return this.voice.state !== "degraded" && !this.stopping.signal.aborted && this.members.suits(at);
  }

  /** Whether it could serve all of another's members without being disturbed. */
  suitsAll(other: Stream): boolean {
    for (const at of other.positions) if (!this.suits(at)) return false;
    return true;
  }

  /** Whether it is waiting to connect, other than because of what it would receive. */
  get waits(): boolean {
    return this.connection === undefined && this.voice.state !== "degraded";
  }

  /** Adds members that it suits. */
  join(placed: readonly Placed[]): void {
    for (const each of placed) this.members.join(each, this.received !== undefined);
    // If they want namespaces that the connection leaves out, ends it; the next one begins at the current position.
    const without = [...(this.connection?.without ?? [])];
    if (without.some((namespace) => this.members.want(namespace))) this.connection?.end({ type: "closed", by: "join" });
  }

  leave(subscriber: Subscriber): void {
    this.members.leave(subscriber);
    this.expired = this.expired.filter((placed) => placed.subscriber !== subscriber);
    // Without other members, the expired ones have nobody to wait for.
    if (this.members.size === 0) this.release();
  }

  *subscribers(): Iterable<Subscriber> {
    yield* this.members.subscribers();
    for (const { subscriber } of this.expired) yield subscriber;
  }

  /** Positions of its members. */
  get positions(): Iterable<ResourceVersion> {
    return this.members.positions(this.received);
  }

  /** Ends it. @returns all members, and a promise that resolves when its connection is closed and no timer is left. */
  dissolve(): { readonly placed: readonly Placed[]; readonly stopped: Promise<unknown> } {
    const placed = [...this.members.moveOut(this.received), ...this.expired];
    const { connection } = this;
    this.expired = [];
    this.stopping.abort(new Error("the stream ends"));
    connection?.end({ type: "closed", by: "join" });
    this.parts.health.dismiss(this.voice);
    return { placed, stopped: Promise.all([this.running, connection?.ended]) };
  }

  // Implementation of `Sink`.

  change(change: Change): void {
    this.accept();
    this.account(change.meta.namespace);
    this.members.change(change);
    this.parts.health.eventAt = change.receivedAt;
    this.parts.health.receivedBytes += change.body.length;
    this.parts.observer.received(this.parts.spec, change.type, change.body.length);
    this.advance(change.meta.resourceVersion);
  }

  bookmark(resourceVersion: ResourceVersion): void {
    const { clock, health, observer, spec } = this.parts;
    this.accept();
    health.bookmarkAt = clock.monotonic();
    observer.received(spec, "Bookmark", 0);
    const older = this.received !== undefined && isNewer(this.received, resourceVersion);
    if (!older) this.members.bookmark(resourceVersion);
    this.advance(resourceVersion);
    if (older && this.resource) this.parts.suspectStale(this.resource, "older-bookmark");
  }

  get congested(): Promise<void> | undefined {
    return this.members.untilFree();
  }

  /** Counts a change that nobody wants. */
  private account(namespace: string): void {
    const { unwanted } = this.parts;
    if (this.connection?.without.has(namespace)) unwanted.ignored();
    else if (!this.members.want(namespace)) unwanted.came(namespace);
  }

  private advance(resourceVersion: ResourceVersion): void {
    if (this.received !== undefined && isNewer(this.received, resourceVersion)) {
      this.parts.observer.stale(this.parts.spec);
      return;
    }
    this.received = resourceVersion;
    const { target } = this;
    if (!target) this.parts.health.received = resourceVersion;
    else if (target.at !== undefined && isUpTo(target.at, resourceVersion)) this.parts.caughtUp(this, target);
  }

  private async run(): Promise<void> {
    // Lets all subscribers of the same turn of the event loop share one connection.
    await Promise.resolve();
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        await this.round();
      } catch (error) {
        if (signal.aborted) return;
        // If handling a failure fails itself, the loop continues, with a backoff.
        await this.setbacks.backOff(causesOf(endingOf(error))).catch(() => {});
      }
    }
  }

  /** Runs one connection and handles its ending. */
  private async round(): Promise<void> {
    const { kind, turnstile, health, liveness } = this.parts;
    const { signal } = this.stopping;
    const resource = this.connection ? this.resource : await kind.served(signal);
    if (!this.connection) {
      await turnstile.pass(signal);
      if (this.parts.moved(this)) return;
    }
    const from = this.members.start();
    if (!resource || from === undefined) return;
    this.resource = resource;
    let silence: Timer | undefined;
    if (!this.connection) {
      this.from = from;
      health.received ??= from;
      const opened = () => {
        if (this.expired.length > 0 || this.members.unsure) {
          silence = this.parts.clock.after(acceptedMs, () => this.accept());
        } else this.accept();
      };
      const without = this.parts.unwanted.leaveOut((namespace) => this.members.want(namespace));
      this.connection = new Connection(this.parts, { resource, sink: this, from, without, opened });
    }
    const { connection } = this;
    const ending = await connection.ended;
    silence?.cancel();
    const { lived } = connection;
    const refuted = this.received !== undefined;
    const after = this.received ?? health.received;
    health.lastByteAt = connection.lastByteAt ?? health.lastByteAt;
    if (refuted) this.from = this.received ?? this.from;
    this.members.uncover(this.received);
    this.received = undefined;
    this.connection = undefined;
    signal.throwIfAborted();
    // The request for `without` may be the reason, so the next connection asks for everything.
    if (connection.without.size > 0 && !connection.wasAccepted) this.parts.unwanted.failed();
    liveness.ended(lived);
    await this.react(ending, { resource, lived, refuted, after });
  }

  /** Records that the server has the history from the start of the connection. */
  private accept(): void {
    const { parts, members, connection, resource } = this;
    if (this.received !== undefined || !connection || !resource || this.stopping.signal.aborted) return;
    this.received = this.from;
    const all = members.cover(this.from);
    if (!all && members.unsure) {
      connection.end({ type: "closed", by: "join" });
      return;
    }
    this.setbacks.worked();
    this.voice.enter("watching");
    this.release();
    if (!all) parts.place(members.moveOutUncovered());
    parts.suspectStale(resource, "resumed");
    parts.runs(this);
    if (!this.target && !this.stopping.signal.aborted) parts.health.received = this.from;
  }

  private async react(
    ending: Ending,
    {
      resource,
      lived,
      refuted,
      after,
    }: { resource: Resource; lived: ConnectionStats; refuted: boolean; after: Placed["at"] | undefined },
  ): Promise<void> {
    const { parts, setbacks } = this;
    const cause = causesOf(ending);
    const step = setbacks.judge({ ending, phase: "live", lived, after, sinceListMs: parts.sinceListMs() });
    // The server may have been restarted on other data; one that is stopped in good order ends its streams early.
    if (ending.type === "network" || (ending.type === "eof" && wasCutShort(lived)))
      parts.suspectStale(resource, "broken");
    const tooLarge = ending.type === "refused" && ending.error.tooLargeResourceVersion;
    if (tooLarge || parts.liveness.suspicious) {
      parts.liveness.cleared();
      parts.suspectStale(resource, "silent");
    }
    switch (step.next) {
      case "resume":
        return setbacks.resume(step, cause);
      case "expired":
        this.expired.push(...this.members.expire({ from: this.from, oldest: step.oldest, refuted }));
        this.setback = step.wait === "backoff" ? cause : this.setback;
        if (this.members.size === 0) this.release();
        return undefined;
      case "relist":
        // The history after this position is useless; members with a later position are not affected.
        this.expired.push(...this.members.moveOut(undefined, ({ at }) => after === undefined || !isNewer(at, after)));
        this.setback = cause;
        return this.release();
      case "missing":
        this.voice.silence();
        return parts.kind.lost(resource, cause);
      case "forbidden":
        return setbacks.forbidden(cause);
      case "degraded":
        return setbacks.degraded(cause);
      case "rewind":
      case "list-instead":
        return setbacks.backOff(cause);
    }
  }

  /** Hands the expired members over, without waiting any longer. */
  release(): void {
    const { expired, setback } = this;
    if (expired.length === 0) return;
    this.expired = [];
    this.setback = undefined;
    this.parts.gone(expired, setback);
  }
}
