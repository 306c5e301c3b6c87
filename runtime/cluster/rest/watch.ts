import type { ServerResponse } from "node:http";
import { ApiError, expired } from "../api/status.ts";
import type { Clock, Timer } from "../clock.ts";
import type { Change } from "../storage/change.ts";
import type { Collection } from "../storage/collection.ts";
import type { Revision } from "../storage/revision.ts";
import type { Store } from "../storage/store.ts";
import { fresh, selected } from "./list.ts";
import type { ListOptions } from "./list-options.ts";
import type { Representation } from "./representation.ts";

/** Interval of bookmarks, approximately, in milliseconds (`bookmarkFrequency` of cacher.go). */
const bookmarkEveryMs = 60_000;
/** A last bookmark is sent this long before the watch's own deadline, in milliseconds (cache_watcher.go). */
const bookmarkBeforeEndMs = 2000;
/**
 * A watcher is closed if its socket has taken nothing while this many further changes arrived, but not before `stallMs`.
 */
const lagLimit = 1000;
/**
 * Minimum stall before a watcher is closed, in milliseconds. The log holds its events, so a short stall costs nothing.
 */
const stallMs = 1000;
/** Maximum size of the events that are joined into one write to the socket, in bytes. */
const batchBytes = 64 * 1024;

const initialEventsEnd = { "k8s.io/initial-events-end": "true" };
const newline = Buffer.from("}\n");

/** Inputs of one watch. */
interface WatchRequest {
  store: Store;
  collection: Collection;
  clock: Clock;
  /** Prefix of the keys: `namespace/`, or "" for all. */
  prefix: string;
  options: ListOptions;
  /** Duration of the watch, in milliseconds. */
  lifetimeMs: number;
  representation: Representation;
}

/**
 * One open watch. It has no queue and remembers only its position in the collection's log, so a slow client costs no memory. A
 * client that falls too far behind is disconnected with a clean EOF.
 */
export class Watcher {
  private readonly request: WatchRequest;
  private readonly response: ServerResponse;
  private revision = 0;
  private stalled: { at: number; revision: number } | undefined;
  private woken = false;
  private done = false;
  private bookmarkTimer: Timer | undefined;
  private endTimer: Timer | undefined;
  private leave: () => void = () => undefined;

  constructor(request: WatchRequest, response: ServerResponse) {
    this.request = request;
    this.response = response;
  }

  /** Serves the watch. The headers must be set. Resolves once the watch runs. */
  async start(): Promise<void> {
    const { store, collection, clock, options } = this.request;
    const asked = options.resourceVersion ?? 0;
    this.response.flushHeaders();
    this.response.on("close", () => this.stop());
    this.response.on("drain", () => this.resume());
    try {
      if (options.sendInitialEvents && asked > 0) await fresh(store, asked);
      const initial = options.sendInitialEvents ?? asked === 0;
      if (!initial && asked < collection.compacted)
        throw expired(`too old resource version: ${asked} (${collection.compacted})`);
      this.revision = initial ? store.revision : asked;
      if (this.response.destroyed) return;
      if (initial) this.sendInitial();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.response.write(`${JSON.stringify({ type: "ERROR", object: error.status })}\n`);
      return this.stop();
    }
    this.leave = collection.listen({ changed: () => this.wake(), compacting: () => this.catchUp() });
    this.endTimer = clock.after(this.request.lifetimeMs, () => this.stop(), { unref: true });
    if (options.allowWatchBookmarks) this.scheduleBookmarks();
    this.pump();
  }

  /** Reads the log to its end before it is dropped. A stalled watch cannot, and ends later. */
  private catchUp(): void {
    this.pump();
    if (!this.stalled) this.revision = Math.max(this.revision, this.request.store.revision);
  }

  private sendInitial(): void {
    const { collection, prefix, options, representation } = this.request;
    const lines: Buffer[] = [];
    for (const [, entry] of collection.current(prefix))
      if (selected(entry, options)) lines.push(...this.line("ADDED", entry));
    if (options.sendInitialEvents && options.allowWatchBookmarks) {
      const object = representation.bookmark(this.revision, initialEventsEnd);
      lines.push(Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object })}\n`));
    }
    if (lines.length > 0) this.write(Buffer.concat(lines));
  }

  private wake(): void {
    if (this.woken || this.done) return;
    this.woken = true;
    setImmediate(() => {
      this.woken = false;
      this.pump();
    });
  }

  /** Sends the changes after the watch's position, until the socket is full. */
  private pump(): void {
    if (this.done) return;
    const { collection, clock } = this.request;
    if (this.stalled) {
      const { at, revision } = this.stalled;
      if (clock.monotonic() - at > stallMs && collection.countAfter(revision) > lagLimit) this.stop();
      else if (collection.ended) this.stop();
      return;
    }
    if (this.revision < collection.compacted) {
      this.stop();
      return;
    }
    const changes = collection.after(this.revision);
    let lines: Buffer[] = [];
    let size = 0;
    for (let change = changes.next(); change; change = changes.next()) {
      this.revision = change.revision;
      for (const piece of this.event(change)) {
        lines.push(piece);
        size += piece.length;
      }
      if (size < batchBytes) continue;
      if (!this.write(Buffer.concat(lines))) return;
      lines = [];
      size = 0;
    }
    if (lines.length > 0) this.write(Buffer.concat(lines));
    if (collection.ended) this.stop();
  }

  /** Encodes the event of a change as this watch sees it; empty if the watch does not see the change. */
  private event(change: Change): Buffer[] {
    const { prefix, options } = this.request;
    if (!change.key.startsWith(prefix)) return [];
    const before = change.previous !== undefined && selected(change.previous, options);
    const after = change.current !== undefined && selected(change.current, options);
    if (after && change.current) return this.line(before ? "MODIFIED" : "ADDED", change.current);
    return before ? this.line("DELETED", change.lost) : [];
  }

  private line(type: string, entry: Revision): Buffer[] {
    return [Buffer.from(`{"type":"${type}","object":`), this.request.representation.bytes(entry), newline];
  }

  private write(bytes: Buffer): boolean {
    const taken = this.response.write(bytes);
    if (!taken) this.stalled = { at: this.request.clock.monotonic(), revision: this.request.collection.lastRevision };
    return taken;
  }

  private resume(): void {
    this.stalled = undefined;
    this.pump();
  }

  private scheduleBookmarks(): void {
    const { clock, lifetimeMs } = this.request;
    const start = clock.monotonic();
    const next = () => {
      const left = lifetimeMs - bookmarkBeforeEndMs - (clock.monotonic() - start);
      if (left <= 0) return;
      const wait = Math.min(bookmarkEveryMs, left);
      this.bookmarkTimer = clock.after(
        wait,
        () => {
          this.bookmark();
          if (wait < left) next();
        },
        { unref: true },
      );
    };
    next();
  }

  /** Sends a bookmark with the newest revision of the cluster, once all earlier events are sent. */
  private bookmark(): void {
    this.pump();
    const { store, representation } = this.request;
    if (this.done || this.stalled || store.revision <= (this.request.options.resourceVersion ?? 0)) return;
    this.revision = Math.max(this.revision, store.revision);
    this.write(
      Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object: representation.bookmark(this.revision) })}\n`),
    );
  }

  private stop(): void {
    if (this.done) return;
    this.done = true;
    this.leave();
    this.bookmarkTimer?.cancel();
    this.endTimer?.cancel();
    this.response.end();
  }
}
