import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import { type Resource, resourcePath } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { namespaceHash } from "../../slots/rendezvous.ts";
import { acceptHeader, ObjectIdentity, type SourceSpec, selectorQuery } from "../fanout/source-spec.ts";
import type { Change } from "../scan/change.ts";
import type { Ending } from "./failure.ts";
import type { ConnectionStats, Liveness } from "./liveness.ts";
import { Session } from "./session.ts";

/** Receives the changes and bookmarks of a connection. */
export interface Sink {
  change(change: Change): void;
  /** @param initialEnd whether it also ends the initial events. */
  bookmark(resourceVersion: ResourceVersion, initialEnd: boolean): void;
  /** Promise while no more can be taken. */
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
  /** Start position; `undefined`: begin with the existing objects (WatchList). */
  readonly from: ResourceVersion | undefined;
  /** For a WatchList: the minimum resourceVersion that it must show. */
  readonly notOlderThan?: ResourceVersion | undefined;
  /** Namespaces that the server is asked to leave out, because nobody needs their changes. Default: empty. */
  readonly without?: ReadonlySet<string>;
  /** The allowed silence until the end of the initial events, in milliseconds. Default: the one that the source has learnt. */
  readonly initialIdleMs?: number;
  /** Called when the server has accepted the watch. */
  readonly opened?: () => void;
}

/**
 * One connection of a watch. The receiver of its changes may be replaced while it runs: a lister that has its list hands the
 * connection to a stream, which continues with it.
 */
export class Connection {
  /** Resolves with the reason for its end. Never rejects. */
  readonly ended: Promise<Ending>;
  /** Namespaces whose changes the server may omit. */
  readonly without: ReadonlySet<string>;
  private readonly parts: ConnectionParts;
  private readonly session: Session;
  private readonly timeoutSeconds: number;
  private readonly began: number;
  private sink: Sink;
  private initialIdleMs: number | undefined;
  private bookmarks = 0;
  private accepted = false;

  constructor(parts: ConnectionParts, options: ConnectionOptions) {
    const { resource, sink, from, notOlderThan, without = none, opened } = options;
    const { spec, transport, clock, liveness } = parts;
    this.parts = parts;
    this.sink = sink;
    this.without = without;
    this.initialIdleMs = options.initialIdleMs;
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
      idleMs: (events) => this.initialIdleMs ?? liveness.idleMs(timeoutSeconds, events),
      // A proxy's heartbeats do not excuse missing initial events.
      spaceEndsSilence: () => this.initialIdleMs === undefined,
      congested: () => this.sink.congested,
      opened: () => {
        this.accepted = true;
        opened?.();
      },
      change: (change) => this.sink.change(change),
      bookmark: (resourceVersion, initialEnd) => {
        if (initialEnd) this.initialIdleMs = undefined;
        else {
          this.bookmarks++;
          liveness.bookmark();
        }
        this.sink.bookmark(resourceVersion, initialEnd);
      },
    });
    this.ended = this.session.run();
  }

  /** Statistics so far. */
  get lived(): ConnectionStats {
    const { timeoutSeconds, bookmarks, session } = this;
    const lastedMs = this.parts.clock.monotonic() - this.began;
    return { timeoutSeconds, bookmarks, lastedMs, events: session.events };
  }

  /** Whether the server accepted it. */
  get wasAccepted(): boolean {
    return this.accepted;
  }

  /** Time of the last byte; `undefined` before the watch was accepted. */
  get lastByteAt(): number | undefined {
    return this.session.lastByteAt;
  }

  /** Replaces the receiver of the following changes. */
  handTo(sink: Sink): void {
    this.sink = sink;
  }

  /** Ends it; the first ending counts, and nothing more is delivered. */
  end(ending: Ending): void {
    this.session.end(ending);
    this.sink = nobody;
  }
}

const none: ReadonlySet<string> = new Set();

/** Discards everything: it replaces a receiver that has left. */
const nobody: Sink = { change() {}, bookmark() {}, congested: undefined };

const field = "object.metadata.namespace";
/** The first number after the largest hash. */
const end = 2n ** 64n;

/**
 * Returns a `shardSelector` (KEP-5866) that selects all objects except those of some namespaces, as the ranges of hashes between
 * theirs. Each excluded hash is one of 2^64, so no other namespace is left out, however a server interprets the selector. Returns
 * "" if no namespace is given.
 */
export function allBut(namespaces: Iterable<string>): string {
  const hashes = [...new Set([...namespaces].map(hashOf))].sort((a, b) => (a < b ? -1 : 1));
  if (hashes.length === 0) return "";
  const starts = [0n, ...hashes.map((hash) => hash + 1n)];
  return [...hashes, end]
    .flatMap((to, index) => {
      const from = starts[index] ?? end;
      return from < to ? [`shardRange(${field},'${hex(from)}','${hex(to)}')`] : [];
    })
    .join("||");
}

function hashOf(namespace: string): bigint {
  const { high, low } = namespaceHash(namespace);
  return (BigInt(high) << 32n) | BigInt(low);
}

const hex = (hash: bigint): string => `0x${hash.toString(16).padStart(16, "0")}`;
