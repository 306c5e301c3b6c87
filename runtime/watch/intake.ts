import type { Clock } from "../clock.ts";
import { type Resource, resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Audience } from "./audience.ts";
import type { Change } from "./change.ts";
import { Ended, type Ending, endingOf } from "./failure.ts";
import { InitialEvents } from "./initial-events.ts";
import { ListExpired, listCollection } from "./list.ts";
import type { ListSlots } from "./list-slots.ts";
import type { Liveness } from "./liveness.ts";
import type { WatchObserver } from "./observer.ts";
import { compareResourceVersions } from "./resource-version.ts";
import { Session } from "./session.ts";
import { acceptHeader, ObjectIdentity, type SourceSpec, selectorQuery } from "./source-spec.ts";
import type { Standing } from "./standing.ts";
import type { ListReason } from "./subscriber.ts";
import type { History } from "./verdict.ts";

/** Initial events that pause longer than this, or take longer than that, do not end: some servers never mark their end. */
const initialIdleMs = 30_000;
const initialTotalMs = 300_000;

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
}

/**
 * Reads lists and streams, one at a time, and hands what they bring to the audience. It keeps the position, up to which
 * everything was received; what to read next, and when, the source decides.
 */
export class Intake {
  /** The connection that is open. */
  session: Session | undefined;
  /** What is being read, or was last. */
  phase: History["phase"] = "live";
  /** Bookmarks of the current connection. */
  bookmarks = 0;
  /** Why a list is due although there is a position; undefined where none is. */
  relist: ListReason | undefined;
  private readonly parts: IntakeParts;

  constructor(parts: IntakeParts) {
    this.parts = parts;
  }

  /** A watch from a known position. */
  follow(resource: Resource, from: string): Promise<Ending> {
    this.phase = "live";
    const resumed = this.parts.standing.received;
    this.parts.standing.received ??= from;
    const timeoutSeconds = this.parts.liveness.nextTimeoutSeconds();
    const query = {
      watch: "1",
      allowWatchBookmarks: "true",
      resourceVersion: from,
      timeoutSeconds: String(timeoutSeconds),
    };
    return this.runSession(resource, query, timeoutSeconds, {
      opened: () => {
        this.parts.audience.settle(resumed);
        this.parts.standing.received = from;
        this.parts.standing.enter("watching");
        if (this.parts.audience.waiting) this.session?.end({ type: "closed", by: "join" });
        this.parts.doubtful(resource, "resumed");
      },
      change: (change) => this.live(change),
      bookmark: (resourceVersion) => this.liveBookmark(resource, resourceVersion),
    });
  }

  /** What exists and then what changes, on one connection (WatchList). */
  async readInitialEvents(resource: Resource): Promise<Ending> {
    const { clock, listSlots } = this.parts;
    const release = await listSlots.take(this.parts.signal);
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
      resourceVersion: (reason === "relist" ? this.parts.standing.received : undefined) ?? "",
      timeoutSeconds: String(timeoutSeconds),
    };
    const overdue = clock.after(initialTotalMs, () => {
      if (initial.running) this.session?.end({ type: "unmarked" });
    });
    const ending = await this.runSession(resource, query, timeoutSeconds, {
      opened: () => {},
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
        this.listed(initial.items, began, listVersion);
        const { outcome, changes } = initial.end(listVersion);
        release();
        if (outcome === "held") throw new Ended({ type: "closed", by: "doubt" });
        for (const change of changes) this.live(change);
        this.parts.standing.enter("watching");
        this.parts.audience.bookmark(resourceVersion);
        this.advance(resourceVersion);
        if (this.parts.audience.waiting) this.session?.end({ type: "closed", by: "join" });
      },
    });
    overdue.cancel();
    release();
    initial.abort();
    return ending;
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
    let ended = false;
    const receiver = this.parts.audience.list(reason, this.parts.standing.received);
    try {
      const listVersion = await listCollection({
        transport,
        clock,
        path: resourcePath(resource, this.parts.spec.namespace),
        query: selectorQuery(this.parts.spec),
        headers: acceptHeader(this.parts.spec, "list"),
        identity: new ObjectIdentity(resource),
        from: { notOlderThan: reason === "relist" ? this.parts.standing.received : undefined },
        paged,
        signal: this.parts.signal,
        congested: () => this.parts.audience.congested,
        item: (change) => {
          items++;
          receiver.item(change);
        },
      });
      this.refuseOlderList(listVersion, reason);
      this.listed(items, began, listVersion);
      ended = true;
      return receiver.end(listVersion) === "held" ? { type: "closed", by: "doubt" } : undefined;
    } catch (error) {
      if (!ended) receiver.abort();
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
      bookmark(resourceVersion: string, initialEnd: boolean): void;
    },
  ): Promise<Ending> {
    this.parts.signal.throwIfAborted();
    this.session = new Session({
      transport: this.parts.transport,
      clock: this.parts.clock,
      path: resourcePath(resource, this.parts.spec.namespace),
      query: { ...selectorQuery(this.parts.spec), ...query },
      headers: acceptHeader(this.parts.spec, "watch"),
      identity: new ObjectIdentity(resource),
      timeoutMs: timeoutSeconds * 1000,
      idleMs: () => (this.phase === "initial" ? initialIdleMs : this.parts.liveness.idleMs),
      congested: () => this.parts.audience.congested,
      ...on,
    });
    return this.session.run();
  }

  /** Everything up to `listVersion` is known now. */
  private listed(items: number, began: number, listVersion: string): void {
    this.parts.observer.listed(this.parts.spec, items, this.parts.clock.monotonic() - began);
    this.phase = "live";
    this.relist = undefined;
    this.parts.standing.received = listVersion;
  }

  /** A list older than what was received before would turn back time for everybody who knows better. */
  private refuseOlderList(listVersion: string, reason: ListReason): void {
    const { received } = this.parts.standing;
    if (reason === "rv-rewind" || received === undefined) return;
    if ((compareResourceVersions(listVersion, received) ?? 0) < 0) throw new Ended({ type: "closed", by: "rewind" });
  }

  private live(change: Change): void {
    this.parts.audience.change(change);
    this.parts.observer.received(this.parts.spec, change.type, change.body.length);
    this.advance(change.meta.resourceVersion);
  }

  private liveBookmark(resource: Resource, resourceVersion: string): void {
    this.bookmarks++;
    this.parts.liveness.bookmark();
    this.parts.standing.bookmarkAt = this.parts.clock.monotonic();
    this.parts.observer.received(this.parts.spec, "Bookmark", 0);
    if (!this.advance(resourceVersion)) this.parts.doubtful(resource, "older-bookmark");
    else this.parts.audience.bookmark(resourceVersion);
  }

  /** @returns false for a resourceVersion older than one before. */
  private advance(resourceVersion: string): boolean {
    const { received } = this.parts.standing;
    const order = received === undefined ? undefined : compareResourceVersions(resourceVersion, received);
    if (order !== undefined && order < 0) {
      this.parts.observer.stale(this.parts.spec);
      return false;
    }
    this.parts.standing.received = resourceVersion;
    return true;
  }
}
