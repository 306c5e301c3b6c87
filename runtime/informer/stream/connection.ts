import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import { type Resource, resourcePath } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { allBut } from "../fanout/shard-selector.ts";
import { acceptHeader, ObjectIdentity, type SourceSpec, selectorQuery } from "../fanout/source-spec.ts";
import type { Change } from "../scan/change.ts";
import type { Ending } from "./failure.ts";
import type { ConnectionStats, Liveness } from "./liveness.ts";
import { Session } from "./session.ts";

/** Who takes what a connection brings. */
export interface Sink {
  change(change: Change): void;
  /** @param initialEnd it also ends the initial events. */
  bookmark(resourceVersion: ResourceVersion, initialEnd: boolean): void;
  /** A promise while no more can be taken. */
  readonly congested: Promise<void> | undefined;
}

export interface ConnectionParts {
  readonly spec: SourceSpec;
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly liveness: Liveness;
}

interface ConnectionOptions {
  readonly resource: Resource;
  readonly sink: Sink;
  /** Where it begins; undefined: with what exists (WatchList). */
  readonly from: ResourceVersion | undefined;
  /** Of a WatchList: it must show at least this. */
  readonly notOlderThan?: ResourceVersion | undefined;
  /** Namespaces whose changes nobody needs: the server is asked to leave them out. Default: none. */
  readonly without?: ReadonlySet<string>;
  /** Silence allowed while this gives a number, in milliseconds, instead of what the source has learnt. */
  readonly idleMs?: () => number | undefined;
  /** The server accepted it. */
  readonly opened?: () => void;
}

/**
 * One connection of a watch. The taker of its changes may change while it runs. A lister that has its list hands the
 * connection to a stream, which goes on with it.
 */
export class Connection {
  /** How it ended. Never rejects. */
  readonly ended: Promise<Ending>;
  /** Changes of objects in these namespaces may not come. */
  readonly without: ReadonlySet<string>;
  private readonly parts: ConnectionParts;
  private readonly session: Session;
  private readonly timeoutSeconds: number;
  private readonly began: number;
  private sink: Sink;
  private bookmarks = 0;
  private accepted = false;

  constructor(parts: ConnectionParts, options: ConnectionOptions) {
    const { resource, sink, from, notOlderThan, without = none, idleMs, opened } = options;
    const { spec, transport, clock, liveness } = parts;
    this.parts = parts;
    this.sink = sink;
    this.without = without;
    this.began = clock.monotonic();
    const timeoutSeconds = liveness.nextTimeoutSeconds();
    this.timeoutSeconds = timeoutSeconds;
    const initial = from === undefined && { sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" };
    this.session = new Session({
      transport,
      clock,
      path: resourcePath(resource, spec.namespace),
      query: {
        ...selectorQuery(spec),
        shardSelector: allBut(without) || undefined,
        watch: "1",
        allowWatchBookmarks: "true",
        ...initial,
        resourceVersion: from ?? notOlderThan ?? "",
        timeoutSeconds: String(timeoutSeconds),
      },
      headers: acceptHeader(spec, "watch"),
      identity: new ObjectIdentity(resource, spec.representation),
      timeoutMs: timeoutSeconds * 1000,
      idleMs: (events) => idleMs?.() ?? liveness.idleMs(timeoutSeconds, events),
      // Initial events that do not come are not excused by a proxy's heartbeats.
      spaceEndsSilence: () => idleMs?.() === undefined,
      congested: () => this.sink.congested,
      opened: () => {
        this.accepted = true;
        opened?.();
      },
      change: (change) => this.sink.change(change),
      bookmark: (resourceVersion, initialEnd) => {
        if (!initialEnd) {
          this.bookmarks++;
          liveness.bookmark();
        }
        this.sink.bookmark(resourceVersion, initialEnd);
      },
    });
    this.ended = this.session.run();
  }

  /** How it has done so far. */
  get lived(): ConnectionStats {
    const { timeoutSeconds, bookmarks, session } = this;
    const lastedMs = this.parts.clock.monotonic() - this.began;
    return { timeoutSeconds, bookmarks, lastedMs, events: session.events };
  }

  /** Whether the server accepted it. */
  get wasAccepted(): boolean {
    return this.accepted;
  }

  /** When the last byte came; undefined before it was accepted. */
  get lastByteAt(): number | undefined {
    return this.session.lastByteAt;
  }

  /** Another takes what comes from now on. */
  handTo(sink: Sink): void {
    this.sink = sink;
  }

  /** Ends it; the first ending counts, and nothing more is brought. */
  end(ending: Ending): void {
    this.session.end(ending);
    this.sink = nobody;
  }
}

const none: ReadonlySet<string> = new Set();

/** Takes nothing: what was on its way to somebody who has left. */
const nobody: Sink = { change() {}, bookmark() {}, congested: undefined };
