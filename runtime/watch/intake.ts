import type { Clock, Timer } from "../clock.ts";
import { type Resource, resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { isNewer, type ResourceVersion, resourceVersion } from "../resource-version.ts";
import type { Audience } from "./audience.ts";
import type { Change } from "./change.ts";
import { Ended, type Ending, endingOf } from "./failure.ts";
import { InitialEvents } from "./initial-events.ts";
import { ListExpired, listCollection } from "./list.ts";
import type { ListSlots } from "./list-slots.ts";
import type { Liveness } from "./liveness.ts";
import type { WatchObserver } from "./observer.ts";
import { Session } from "./session.ts";
import { acceptHeader, ObjectIdentity, type SourceSpec, selectorQuery } from "./source-spec.ts";
import type { Standing } from "./standing.ts";
import type { ListReason, ListReceiver } from "./subscriber.ts";
import type { History } from "./verdict.ts";

/** Initial events that pause longer than this, or take longer than that, do not end: some servers never mark their end. */
const initialIdleMs = 30_000;
const initialTotalMs = 300_000;
/** An API server accepts a watch whose history is gone, and says so at once in its first line: after this the watch holds. */
const acceptedMs = 1000;

export interface IntakeParts {
  readonly spec: SourceSpec;
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly observer: WatchObserver;
  readonly listSlots: ListSlots;
  readonly audience: Audience;
  readonly standing: Standing;
  readonly liveness: Liveness;
  /** Aborts when the source stops. */
  readonly signal: AbortSignal;
  /** A stream that resumes from a position is open, or one brought a bookmark older than that. */
  doubtful(resource: Resource, why: "resumed" | "older-bookmark"): void;
  /** A stream runs, and everybody whom it serves has a position. */
  streaming(): void;
}

interface CompleteList {
  /** When it was begun, in monotonic milliseconds. */
  readonly began: number;
  readonly listVersion: ResourceVersion;
  readonly reason: ListReason;
  readonly outcome: "counted" | "held";
}

/**
 * Reads lists and streams, one at a time, and hands what they bring to the audience. It keeps the position, up to which
 * everything was received; what to read next, and when, the source decides.
 */
export class Intake {
  /** The connection that is open. */
  session: Session | undefined;
  /** A stream runs, and serves those who are settled. */
  streams = false;
  /** What is being read, or was last. */
  phase: History["phase"] = "live";
  /** Bookmarks of the current connection. */
  bookmarks = 0;
  /** Why a list is due although there is a position; undefined where none is. */
  relist: ListReason | undefined;
  /** Complete lists so far, and when the last one was, in monotonic milliseconds. */
  lists = 0;
  listedAt = Number.NEGATIVE_INFINITY;
  /** Where the last watch was asked to begin. */
  private from = resourceVersion("");
  private readonly parts: IntakeParts;

  constructor(parts: IntakeParts) {
    this.parts = parts;
  }

  /** The newest position that a subscriber, or the source itself, has. */
  get newest(): ResourceVersion | undefined {
    return this.parts.audience.newest(this.parts.standing.received);
  }

  /** The stream ended because its history is gone. @returns whether somebody may go on from further on. */
  expire(oldest: ResourceVersion | undefined): boolean {
    const { received } = this.parts.standing;
    const from = (this.streams ? received : undefined) ?? this.from;
    return this.parts.audience.expire({ from, oldest, refuted: this.streams, received });
  }

  /** A watch from a known position. */
  follow(resource: Resource, from: ResourceVersion): Promise<Ending> {
    const { clock, audience, signal } = this.parts;
    this.phase = "live";
    this.from = from;
    const resumed = this.parts.standing.received;
    this.parts.standing.received ??= from;
    const timeoutSeconds = this.parts.liveness.nextTimeoutSeconds();
    const query = {
      watch: "1",
      allowWatchBookmarks: "true",
      resourceVersion: from,
      timeoutSeconds: String(timeoutSeconds),
    };
    const accepted = () => {
      if (this.streams || signal.aborted) return;
      this.streams = true;
      audience.settle(from, resumed);
      this.parts.standing.received = from;
      this.parts.standing.enter("watching");
      if (audience.waiting) return this.session?.end({ type: "closed", by: "join" });
      this.parts.doubtful(resource, "resumed");
      this.parts.streaming();
    };
    let silence: Timer | undefined;
    const session = this.runSession(resource, query, timeoutSeconds, {
      opened: () => {
        if (audience.divided) silence = clock.after(acceptedMs, accepted);
        else accepted();
      },
      change: (change) => {
        accepted();
        this.live(change);
      },
      bookmark: (resourceVersion) => {
        accepted();
        this.liveBookmark(resource, resourceVersion);
      },
    });
    return session.finally(() => silence?.cancel());
  }

  /** What exists and then what changes, on one connection (WatchList). */
  async readInitialEvents(resource: Resource): Promise<Ending> {
    const { listSlots } = this.parts;
    const release = await listSlots.take(this.parts.signal);
    try {
      return await this.followInitialEvents(resource, release);
    } finally {
      release();
    }
  }

  /** @param listed gives the turn to list to others. */
  private async followInitialEvents(resource: Resource, listed: () => void): Promise<Ending> {
    const { clock } = this.parts;
    const reason = this.relist ?? "relist";
    const began = clock.monotonic();
    this.phase = "initial";
    this.parts.standing.enter("listing");
    const initial = new InitialEvents(this.parts.audience.list(reason, this.parts.standing.received));
    const timeoutSeconds = this.parts.liveness.nextTimeoutSeconds();
    const query = {
      watch: "1",
      allowWatchBookmarks: "true",
      sendInitialEvents: "true",
      resourceVersionMatch: "NotOlderThan",
      resourceVersion: (reason === "relist" ? this.newest : undefined) ?? "",
      timeoutSeconds: String(timeoutSeconds),
    };
    const overdue = clock.after(initialTotalMs, () => {
      if (initial.running) this.session?.end({ type: "unmarked" });
    });
    const session = this.runSession(resource, query, timeoutSeconds, {
      opened: () => {
        // From a position in its future the server would keep silent here as well.
        if (query.resourceVersion !== "") this.parts.doubtful(resource, "resumed");
      },
      change: (change) => {
        if (initial.running) initial.change(change);
        else this.live(change);
      },
      bookmark: (resourceVersion, initialEnd) => {
        if (!initial.running) return this.liveBookmark(resource, resourceVersion);
        if (!initialEnd) return;
        const listVersion = initial.listVersion(resourceVersion);
        if (listVersion === undefined) throw new Ended({ type: "unmarked" });
        this.refuseOlderList(listVersion, reason);
        const { outcome, changes } = initial.end(listVersion);
        this.listed(initial.items, { began, listVersion, reason, outcome });
        listed();
        if (outcome === "held") throw new Ended({ type: "closed", by: "doubt" });
        this.streams = true;
        for (const change of changes) this.live(change);
        this.parts.standing.enter("watching");
        this.parts.audience.bookmark(resourceVersion);
        this.advance(resourceVersion);
        this.parts.streaming();
        if (this.parts.audience.waiting) this.session?.end({ type: "closed", by: "join" });
      },
    });
    return session.finally(() => {
      overdue.cancel();
      initial.abort();
    });
  }

  /** What exists, page by page. Undefined: it was read, and can be followed from. */
  async readList(resource: Resource, paged = true): Promise<Ending | undefined> {
    const { clock, listSlots, transport } = this.parts;
    const release = await listSlots.take(this.parts.signal);
    const reason = this.relist ?? "relist";
    const began = clock.monotonic();
    this.phase = "list";
    this.parts.standing.enter("listing");
    let items = 0;
    let receiver: ListReceiver | undefined;
    try {
      const receiving = this.parts.audience.list(reason, this.parts.standing.received);
      receiver = receiving;
      const listVersion = await listCollection({
        transport,
        clock,
        path: resourcePath(resource, this.parts.spec.namespace),
        query: selectorQuery(this.parts.spec),
        headers: acceptHeader(this.parts.spec, "list"),
        identity: new ObjectIdentity(resource),
        from: { notOlderThan: reason === "relist" ? this.newest : undefined },
        paged,
        signal: this.parts.signal,
        congested: () => this.parts.audience.congested,
        item: (change) => {
          items++;
          receiving.item(change);
        },
      });
      this.refuseOlderList(listVersion, reason);
      const outcome = receiving.end(listVersion);
      this.listed(items, { began, listVersion, reason, outcome });
      return outcome === "held" ? { type: "closed", by: "doubt" } : undefined;
    } catch (error) {
      receiver?.abort();
      if (!(error instanceof ListExpired) || !paged) return endingOf(error);
    } finally {
      release();
    }
    return this.readList(resource, false);
  }

  private async runSession(
    resource: Resource,
    query: Record<string, string>,
    timeoutSeconds: number,
    on: {
      opened(): void;
      change(change: Change): void;
      bookmark(resourceVersion: ResourceVersion, initialEnd: boolean): void;
    },
  ): Promise<Ending> {
    this.parts.signal.throwIfAborted();
    this.streams = false;
    this.session = new Session({
      transport: this.parts.transport,
      clock: this.parts.clock,
      path: resourcePath(resource, this.parts.spec.namespace),
      query: { ...selectorQuery(this.parts.spec), ...query },
      headers: acceptHeader(this.parts.spec, "watch"),
      identity: new ObjectIdentity(resource),
      timeoutMs: timeoutSeconds * 1000,
      idleMs: (lines) => (this.phase === "initial" ? initialIdleMs : this.parts.liveness.idleMs(lines)),
      congested: () => this.parts.audience.congested,
      ...on,
    });
    return this.session.run();
  }

  /** A list is complete. What it was for is done, unless a subscriber holds it or time went back while it was read. */
  private listed(items: number, { began, listVersion, reason, outcome }: CompleteList): void {
    const { observer, spec, clock, standing } = this.parts;
    this.lists++;
    this.listedAt = clock.monotonic();
    observer.listed(spec, items, this.listedAt - began);
    standing.received = listVersion;
    if (outcome === "held") return;
    this.phase = "live";
    if (reason === this.relist || this.relist !== "rv-rewind") this.relist = undefined;
  }

  /** A list older than what was received before would turn back time for everybody who knows better. */
  private refuseOlderList(listVersion: ResourceVersion, reason: ListReason): void {
    const { newest } = this;
    if (reason === "rv-rewind" || newest === undefined) return;
    if (isNewer(newest, listVersion)) throw new Ended({ type: "closed", by: "rewind" });
  }

  private live(change: Change): void {
    this.parts.audience.change(change);
    this.parts.observer.received(this.parts.spec, change.type, change.body.length);
    this.advance(change.meta.resourceVersion);
  }

  private liveBookmark(resource: Resource, resourceVersion: ResourceVersion): void {
    this.bookmarks++;
    this.parts.liveness.bookmark();
    this.parts.standing.bookmarkAt = this.parts.clock.monotonic();
    this.parts.observer.received(this.parts.spec, "Bookmark", 0);
    if (!this.advance(resourceVersion)) this.parts.doubtful(resource, "older-bookmark");
    else this.parts.audience.bookmark(resourceVersion);
  }

  /** @returns false for a resourceVersion older than one before. */
  private advance(resourceVersion: ResourceVersion): boolean {
    const { received } = this.parts.standing;
    if (received !== undefined && isNewer(received, resourceVersion)) {
      this.parts.observer.stale(this.parts.spec);
      return false;
    }
    this.parts.standing.received = resourceVersion;
    return true;
  }
}
