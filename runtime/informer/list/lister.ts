import { pause } from "../../base/clock.ts";
import { isNewer, isUpTo, predecessor, type ResourceVersion } from "../../base/resource-version.ts";
import type { Resource } from "../../kube/resource.ts";
import type { ListReason, Subscriber } from "../fanout/subscriber.ts";
import type { Change } from "../scan/change.ts";
import { Connection } from "../stream/connection.ts";
import { type Ending, endingOf, SessionEnded } from "../stream/failure.ts";
import type { HealthReporter } from "../stream/informer-health.ts";
import type { ConnectionStats } from "../stream/liveness.ts";
import type { SessionHistory } from "../stream/next-step.ts";
import { causesOf, type RetryCause, RetryState } from "../stream/retry-state.ts";
import type { InformerParts, OpenStream } from "../stream/stream.ts";
import { secondOpinionMs } from "./diff.ts";
import type { ListSemaphore } from "./list-semaphore.ts";
import { Listing, type ListRequester } from "./listing.ts";
import { HeldChanges, PagedList } from "./paged-list.ts";

/**
 * Longest pause within initial events, and their longest total duration, in milliseconds. Beyond either they count as endless:
 * some servers never mark their end.
 */
const initialIdleMs = 30_000;
const initialTotalMs = 300_000;
/** How long a server without WatchList is read by LIST, in milliseconds. */
const listInsteadMs = 3_600_000;

/**
 * Delay before a list, in milliseconds: `eachMs` for each list so far, up to `mostMs`. It lets subscribers that arrive one by one
 * share a list. Without it 1,000 functions that start take 190 to 290 lists, each on its own connection; with it they take 50.
 */
const share = { eachMs: 5, mostMs: 100 };

const doubt: RetryCause = {
  cause: "doubt",
  message: "this list lacks most of the known objects; a second one, 30 s later, decides",
};

/** Subscribers that have received the list, and the resourceVersion at which it ends. */
export interface Handover {
  readonly subscribers: readonly Subscriber[];
  readonly at: ResourceVersion;
  /** A connection that continues from there, if one is already open. */
  readonly openStream: OpenStream | undefined;
}

interface ListerParts extends InformerParts {
  readonly listSlots: ListSemaphore;
  /** Aborts when the source stops. */
  readonly signal: AbortSignal;
  /** Returns the newest resourceVersion known to any subscriber of the source. */
  newest(): ResourceVersion | undefined;
  /** Called when a list asks for a resourceVersion that may lie in the server's future. */
  resumed(resource: Resource): void;
  listed(handover: Handover): void;
  /** Called when a list is older than what was received before it began. */
  rewound(cause: RetryCause): void;
}

/** State of the list that is being read. */
interface ListInProgress {
  readonly listing: Listing;
  readonly resource: Resource;
  readonly began: number;
  /** Lower bound for a valid list: the newest resourceVersion received before it began. */
  readonly floor: ResourceVersion | undefined;
  /** Minimum resourceVersion that the server is asked for. */
  readonly notOlderThan: ResourceVersion | undefined;
  /** Aborts when no subscriber waits for the list any more. */
  readonly over: AbortController;
}

/**
 * Reads lists for the subscribers of a source that need one; then hands them to a stream. One list is read at a time; a
 * subscriber that asks meanwhile gets the next one. Retries until every subscriber has a list.
 */
export class Lister {
  /** Number of complete lists so far, and when the last one was completed, in monotonic milliseconds. */
  lists = 0;
  listedAtMs = Number.NEGATIVE_INFINITY;
  private readonly parts: ListerParts;
  private readonly voice: HealthReporter;
  private readonly setbacks: RetryState;
  private waiting: ListRequester[] = [];
  private reading: ListInProgress | undefined;
  private listInsteadUntil = Number.NEGATIVE_INFINITY;
  /**
   * True if the last list's resourceVersion was gone (client-go `reflector.go`, isLastSyncResourceVersionUnavailable), or its
   * server lagged behind others. The next list requests no resourceVersion and is read consistently.
   */
  private unversioned = false;
  /** True if a continue token had expired on use: the next list is read in one piece. */
  private whole = false;
  /** Why the next list waits. */
  private setback: RetryCause | undefined;
  /** Aborts when no subscriber needs a list any more. */
  private idle = new AbortController();
  /** Aborts when another subscriber arrives. */
  private nap = new AbortController();
  private running: Promise<void> | undefined;

  constructor(parts: ListerParts) {
    this.parts = parts;
    this.voice = parts.health.voice();
    const signal = () => AbortSignal.any([parts.signal, this.idle.signal]);
    this.setbacks = new RetryState({
      ...parts,
      voice: this.voice,
      get signal() {
        return signal();
      },
    });
  }

  get size(): number {
    return this.waiting.length + (this.reading?.listing.size ?? 0);
  }

  /** Subscribers that need a list or are receiving one. */
  get requesters(): readonly ListRequester[] {
    return [...this.waiting, ...(this.reading?.listing.requesters ?? [])];
  }

  /** Whether any subscriber needs a full relist because resourceVersions went back. */
  get rewinds(): boolean {
    return this.requesters.some(({ reason }) => reason === "rv-rewind");
  }

  /** Adds subscribers that need a list. @param setback the reason to wait as after a failure. */
  ask(requesters: readonly ListRequester[], setback?: RetryCause): void {
    if (requesters.length === 0) return;
    this.waiting.push(...requesters);
    this.setback ??= setback;
    if (!this.nap.signal.aborted) this.nap.abort();
    this.running ??= this.run();
  }

  /** Removes a subscriber. @returns whether it was present. */
  leave(subscriber: Subscriber): boolean {
    const before = this.size;
    this.waiting = this.waiting.filter((requester) => requester.subscriber !== subscriber);
    this.reading?.listing.leave(subscriber);
    if (this.reading?.listing.size === 0) this.reading.over.abort();
    if (this.size === 0) {
      this.idle.abort();
      this.voice.silence();
    }
    return this.size < before;
  }

  /**
   * Handles resourceVersions that went back: abandons the list that is being read, and distrusts known resourceVersions, which
   * may lie in the future.
   */
  rewind(): void {
    const all = this.requesters;
    this.cancel();
    this.waiting = all.map((requester) => {
      const knows = requester.at !== undefined || requester.subscriber.newestKnown !== undefined;
      return { ...requester, reason: knows ? "rv-rewind" : requester.reason, dueAt: this.parts.clock.monotonic() };
    });
  }

  /** Records why the next list is read. */
  explain(cause: RetryCause): void {
    this.voice.enter("listing", cause);
  }

  /**
   * Handles the removal of the kind with its objects: gives an empty list to every subscriber that knows an object. If a
   * subscriber holds the list back, it is offered again; the missing definition is the second opinion.
   */
  async removed(at: ResourceVersion): Promise<void> {
    this.cancel();
    let relisted: readonly Subscriber[] = [];
    for (let held = true; held; ) {
      held = false;
      for (const requester of this.waiting) {
        const { subscriber } = requester;
        if (relisted.includes(subscriber) || (requester.at === undefined && subscriber.newestKnown === undefined))
          continue;
        if (subscriber.list("crd-removed", requester.at).end(at) === "held") held = true;
        else relisted = [...relisted, subscriber];
      }
      // Waits out the whole delay, even if no subscriber needs a list: that may have been so before these arrived.
      if (held) await pause(this.parts.clock, secondOpinionMs, this.parts.signal);
    }
    this.waiting = this.waiting.map((requester) =>
      relisted.includes(requester.subscriber) ? { ...requester, at, reason: "relist" } : requester,
    );
  }

  /** Resolves when all activity has ended. The source's signal must have aborted before. */
  async stop(): Promise<void> {
    this.reading?.over.abort();
    await this.running;
  }

  /** Abandons the list that is being read; its subscribers wait again. */
  private cancel(): void {
    const { reading } = this;
    if (!reading) return;
    this.waiting.push(...reading.listing.requesters);
    reading.listing.abort();
    reading.over.abort();
  }

  private async run(): Promise<void> {
    // Lets all subscribers of the same turn of the event loop share one list.
    await Promise.resolve();
    const { signal } = this.parts;
    while (!signal.aborted && this.waiting.length > 0) {
      this.idle = new AbortController();
      try {
        await this.round();
      } catch (error) {
        if (signal.aborted || this.idle.signal.aborted) continue;
        // If handling a failure fails itself, the loop continues, with a backoff.
        await this.setbacks.backOff(causesOf(endingOf(error))).catch(() => {});
      }
    }
    this.running = undefined;
    if (!signal.aborted) this.voice.silence();
  }

  /** Reads one list for all subscribers that are due, and handles its ending. */
  private async round(): Promise<void> {
    const { kind, turnstile, listSlots } = this.parts;
    const signal = AbortSignal.any([this.parts.signal, this.idle.signal]);
    const { setback } = this;
    this.setback = undefined;
    if (setback) await this.setbacks.backOff(setback);
    await this.untilDue(signal);
    await this.untilShared(signal);
    const resource = await kind.served(signal);
    await turnstile.pass(signal);
    const release = await listSlots.take(signal);
    try {
      await this.read(resource);
    } finally {
      this.reading = undefined;
      release();
    }
  }

  private async untilDue(signal: AbortSignal): Promise<void> {
    for (;;) {
      const waitMs = Math.min(...this.waiting.map(({ dueAt }) => dueAt)) - this.parts.clock.monotonic();
      if (waitMs <= 0) return;
      this.voice.enter("backoff", { ...doubt, delayMs: waitMs });
      this.nap = new AbortController();
      await pause(this.parts.clock, waitMs, AbortSignal.any([signal, this.nap.signal])).catch(() => {});
      signal.throwIfAborted();
    }
  }

  /** Waits so that other subscribers can join. */
  private async untilShared(signal: AbortSignal): Promise<void> {
    const until = this.listedAtMs + Math.min(share.mostMs, share.eachMs * this.lists);
    const waitMs = until - this.parts.clock.monotonic();
    if (waitMs > 0) await pause(this.parts.clock, waitMs, signal);
  }

  private async read(resource: Resource): Promise<void> {
    const { clock } = this.parts;
    const now = clock.monotonic();
    const due = this.waiting.filter(({ dueAt }) => dueAt <= now);
    if (due.length === 0) return;
    const listing = new Listing(due);
    this.waiting = this.waiting.filter((requester) => !due.includes(requester));
    const over = new AbortController();
    const notOlderThan = this.newestOf(due);
    const reading: ListInProgress = { listing, resource, began: now, floor: this.parts.newest(), notOlderThan, over };
    this.reading = reading;
    this.voice.enter("listing");
    const phase = now >= this.listInsteadUntil ? "initial" : "list";
    const read = phase === "initial" ? this.readInitialEvents(reading) : this.readPages(reading);
    const { ending, lived } = await read;
    // Subscribers still in `listing` have no list. An empty listing is complete or was abandoned.
    const left = listing.requesters;
    listing.abort();
    this.reading = undefined;
    if (left.length === 0) return;
    this.waiting.unshift(...left);
    await this.react(ending, phase, lived, reading);
  }

  /** Reads existing objects and then live changes on one connection (WatchList). */
  private async readInitialEvents(reading: ListInProgress): Promise<{ ending: Ending; lived: ConnectionStats }> {
    const { clock } = this.parts;
    const { listing, resource, over, notOlderThan } = reading;
    const complete = Promise.withResolvers<Ending>();
    const initial = new InitialEvents((change) => listing.item(change));
    const connection: Connection = new Connection(this.parts, {
      resource,
      from: undefined,
      notOlderThan,
      initialIdleMs,
      // With a position in its future, the server would be silent here as well.
      opened: () => notOlderThan !== undefined && this.parts.resumed(resource),
      sink: {
        change: (change) => initial.change(change),
        bookmark: (marked, initialEnd) => {
          if (!initialEnd) return;
          const at = initial.listVersion(marked);
          if (at === undefined) throw new SessionEnded({ type: "unmarked" });
          complete.resolve(stopped);
          this.complete(reading, at, { connection, resource, held: initial.held.take(), marked });
        },
        get congested() {
          return listing.congested;
        },
      },
    });
    const end = () => connection.end(stopped);
    over.signal.addEventListener("abort", end, { once: true });
    if (over.signal.aborted) end();
    const overdue = clock.after(initialTotalMs, () => connection.end({ type: "unmarked" }));
    const ending = await Promise.race([connection.ended, complete.promise]);
    overdue.cancel();
    over.signal.removeEventListener("abort", end);
    // A subscriber that throws at the end of its list ends the connection.
    return { ending: listing.size > 0 ? await connection.ended : ending, lived: connection.lived };
  }

  /** Reads existing objects page by page. */
  private async readPages(reading: ListInProgress): Promise<{ ending: Ending; lived: ConnectionStats }> {
    const { listing, resource, over, notOlderThan } = reading;
    const pages = new PagedList(this.parts, {
      resource,
      listing,
      notOlderThan,
      paged: !this.whole,
      signal: over.signal,
    });
    const lived = { timeoutSeconds: 0, lastedMs: 0, events: 0, bookmarks: 0 };
    try {
      const at = await pages.read();
      this.complete(reading, at, pages.openStream());
      this.whole = false;
      return { ending: stopped, lived };
    } catch (error) {
      await pages.giveUp();
      if (!pages.expired || this.whole) return { ending: endingOf(error), lived };
      this.whole = true;
      return { ending: stopped, lived };
    }
  }

  /** Throws if the list does not count, or a subscriber threw. */
  private complete(reading: ListInProgress, at: ResourceVersion, openStream: OpenStream | undefined): void {
    const { listing, began } = reading;
    const { clock, observer, spec, health } = this.parts;
    const rewinds = listing.requesters.some(({ reason }) => reason === "rv-rewind");
    if (!rewinds) this.assertNew(reading, at);
    assertGoesOn(reading, at);
    const why = whyListed(listing.requesters);
    const { counted, held, fault } = listing.end(at);
    const now = clock.monotonic();
    this.lists++;
    this.listedAtMs = now;
    this.unversioned = false;
    this.setbacks.worked();
    health.lastList = { at: now, items: listing.items, tookMs: now - began, why };
    observer.listed(spec, listing.items, now - began);
    if (held.length > 0) health.reconnected(doubt.cause);
    this.waiting.push(...held.map((requester) => ({ ...requester, dueAt: now + secondOpinionMs })));
    if (openStream?.marked !== undefined && openStream.held.length === 0) {
      for (const subscriber of counted) subscriber.bookmark(openStream.marked);
    }
    this.parts.listed({ subscribers: counted, at, openStream: fault === undefined ? openStream : undefined });
    if (fault !== undefined) throw fault;
  }

  /**
   * Throws if a list is older than what was received before it began, since it would turn back time for subscribers that know
   * newer states. If the list was requested at an older resourceVersion, this shows only that its server lags: the next one is
   * read consistently.
   */
  private assertNew({ floor, notOlderThan }: ListInProgress, at: ResourceVersion): void {
    if (floor === undefined || !isNewer(floor, at)) return;
    if (notOlderThan === undefined || isNewer(notOlderThan, at))
      throw new SessionEnded({ type: "closed", by: "rewind" });
    this.unversioned = true;
    throw new SessionEnded(stopped);
  }

  private async react(
    ending: Ending,
    phase: SessionHistory["phase"],
    lived: ConnectionStats,
    reading: ListInProgress,
  ): Promise<void> {
    const { parts, setbacks } = this;
    if (ending === stopped) return;
    const cause = causesOf(ending);
    const sinceListMs = parts.clock.monotonic() - this.listedAtMs;
    if (ending.type === "refused" && ending.error.tooLargeResourceVersion) parts.resumed(reading.resource);
    const step = setbacks.judge({ ending, phase, lived, after: reading.floor, sinceListMs });
    switch (step.next) {
      case "resume":
        return setbacks.resume(step, cause);
      case "expired":
      case "relist":
        if (reading.notOlderThan === undefined || this.unversioned) return setbacks.backOff(cause);
        this.unversioned = true;
        return undefined;
      case "rewind":
        parts.rewound(cause);
        return undefined;
      case "list-instead":
        this.listInsteadUntil = parts.clock.monotonic() + listInsteadMs;
        return undefined;
      case "missing":
        this.voice.silence();
        parts.kind.lost(reading.resource, cause);
        return undefined;
      case "forbidden":
        return setbacks.forbidden(cause);
      case "degraded":
        return setbacks.degraded(cause);
    }
  }

  /** Returns the minimum resourceVersion that a list for these subscribers must show; `undefined`: it is read consistently. */
  private newestOf(requesters: readonly ListRequester[]): ResourceVersion | undefined {
    if (this.unversioned || requesters.some(({ reason }) => reason === "rv-rewind")) return undefined;
    let newest: ResourceVersion | undefined;
    for (const { at, subscriber } of requesters) {
      for (const version of [at, subscriber.newestKnown]) {
        if (version !== undefined && (newest === undefined || isNewer(version, newest))) newest = version;
      }
    }
    return newest;
  }
}

/** Throws if a list that is not older than any known state contradicts it: the cluster's state went back. */
function assertGoesOn({ floor, listing }: ListInProgress, at: ResourceVersion): void {
  const coversAll = floor === undefined || isUpTo(floor, at);
  if (coversAll && listing.provesRewind(at)) throw new SessionEnded({ type: "closed", by: "rewind" });
}

const reasons: Readonly<Record<ListReason, string>> = {
  initial: "a function began to read it",
  relist: "the server no longer had the changes since the last connection",
  "rv-rewind": "the server's resourceVersions went back",
  "crd-removed": "the kind was removed",
};

/** Describes why a list was read: the reasons of its subscribers. */
const whyListed = (requesters: readonly ListRequester[]): string =>
  [...new Set(requesters.map(({ reason }) => reasons[reason]))].join("; ");

/** Ending of a list that every subscriber has, or that no subscriber waits for. */
const stopped: Ending = { type: "closed", by: "stop" };

/**
 * First part of a WatchList: ADDED events for the existing objects in no order of resourceVersion, then a bookmark that marks
 * their end. A busy resource's live events are interleaved before that mark. They are held back, because a list has one entry per
 * object; the list then ends just before the first of them.
 */
class InitialEvents {
  /** Live events received before the end mark. */
  readonly held = new HeldChanges();
  private readonly item: (change: Change) => void;

  /** @param item called for each existing object. */
  constructor(item: (change: Change) => void) {
    this.item = item;
  }

  /** Throws SessionEnded if more live events than can be held precede the end mark. */
  change(change: Change): void {
    if (change.type === "Added" && !this.held.first) this.item(change);
    else if (!this.held.add(change)) throw new SessionEnded({ type: "unmarked" });
  }

  /**
   * Returns the resourceVersion of the list that ends at a mark with `marked`; `undefined` if live events were held and the
   * resourceVersion before the first cannot be computed.
   */
  listVersion(marked: ResourceVersion): ResourceVersion | undefined {
    const { first } = this.held;
    return first ? predecessor(first.meta.resourceVersion) : marked;
  }
}
