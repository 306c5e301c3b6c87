import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import { type Resource, resourcePath } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { acceptHeader, ObjectIdentity, selectorQuery } from "../fanout/source-spec.ts";
import type { Change } from "../scan/change.ts";
import { Connection, type ConnectionParts, type Sink } from "../stream/connection.ts";
import type { OpenStream } from "../stream/stream.ts";
import { ListExpired, listCollection } from "./list.ts";
import type { Listing } from "./listing.ts";

/** Most live events that are held until a list is complete: about one second's worth for a WatchList. */
const heldLimit = 10_000;
const heldBytesLimit = 32 * 1024 * 1024;

/** Live events that wait until the list before them is complete. */
export class HeldChanges {
  private changes: Change[] = [];
  private bytes = 0;

  get first(): Change | undefined {
    return this.changes[0];
  }

  /** @returns false if the limit is exceeded. */
  add(change: Change): boolean {
    this.changes.push(change);
    this.bytes += change.body.length;
    return this.changes.length <= heldLimit && this.bytes <= heldBytesLimit;
  }

  /** Removes and returns all held changes, in order. */
  take(): readonly Change[] {
    const { changes } = this;
    this.changes = [];
    this.bytes = 0;
    return changes;
  }
}

interface PagedListParts extends ConnectionParts {
  readonly transport: KubeTransport;
  readonly clock: Clock;
}

interface PagedListOptions {
  readonly resource: Resource;
  readonly listing: Listing;
  readonly notOlderThan: ResourceVersion | undefined;
  /** False: everything in one response. */
  readonly paged: boolean;
  readonly signal: AbortSignal;
}

/**
 * A paged LIST. Its resourceVersion is the first page's, so the server's history may no longer reach back to it when the last
 * page arrives. Therefore a watch from there is opened together with the second page, and its changes are held.
 */
export class PagedList implements Sink {
  readonly congested = undefined;
  /** True if a continue token expired between two pages. */
  expired = false;
  private readonly parts: PagedListParts;
  private readonly options: PagedListOptions;
  private readonly held = new HeldChanges();
  private connection: Connection | undefined;
  private over = false;

  constructor(parts: PagedListParts, options: PagedListOptions) {
    this.parts = parts;
    this.options = options;
  }

  /** @returns the list's resourceVersion. Rejects like `listCollection`, or with the signal's reason. */
  async read(): Promise<ResourceVersion> {
    const { transport, clock, spec } = this.parts;
    const { resource, listing, notOlderThan, paged, signal } = this.options;
    try {
      return await listCollection({
        transport,
        clock,
        path: resourcePath(resource, spec.namespace),
        query: selectorQuery(spec),
        headers: acceptHeader(spec, "list"),
        identity: new ObjectIdentity(resource, spec.representation),
        from: { notOlderThan },
        paged,
        signal,
        congested: () => listing.congested,
        item: (change) => listing.item(change),
        begun: (from) => this.follow(from),
      });
    } catch (error) {
      this.expired = error instanceof ListExpired;
      throw error;
    }
  }

  /** Returns the watch opened during the list, and its held changes; `undefined` if no watch is running. */
  openStream(): OpenStream | undefined {
    const { connection, over } = this;
    if (!connection || over) return undefined;
    return { connection, resource: this.options.resource, held: this.held.take(), marked: undefined };
  }

  /** Abandons the list. Resolves when its connections are closed. */
  async giveUp(): Promise<void> {
    this.over = true;
    this.held.take();
    this.connection?.end({ type: "closed", by: "stop" });
    await this.connection?.ended;
  }

  change(change: Change): void {
    if (!this.held.add(change)) void this.giveUp();
  }

  bookmark(): void {}

  private follow(from: ResourceVersion): void {
    const { resource } = this.options;
    this.connection = new Connection(this.parts, { resource, from, sink: this });
    void this.connection.ended.then(() => {
      this.over = true;
      this.held.take();
    });
  }
}
