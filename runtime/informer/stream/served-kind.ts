import { type Clock, pause, type Random } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { abortable } from "../../kube/abortable.ts";
import { type DefinedKind, type DefinitionPresence, definitionPresence } from "../../kube/cluster-facts.ts";
import { assertIn, assertWatchable, type Discovery, splitApiVersion } from "../../kube/discovery.ts";
import type { Resource } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { WatchObserver } from "../fanout/observer.ts";
import type { SourceSpec } from "../fanout/source-spec.ts";
import { endingOf } from "./failure.ts";
import type { HealthReporter, InformerHealth } from "./informer-health.ts";
import { causesOf, degradedMs, type RetryCause, RetryState } from "./retry-state.ts";

/**
 * Range of the delay between two discoveries of a kind that is not served, in milliseconds. A custom resource must be listed
 * within 5 s of being established, so this is a little shorter.
 */
const missingPollMs = { from: 3000, to: 4000 };

interface ServedKindParts {
  readonly spec: SourceSpec;
  readonly transport: KubeTransport;
  readonly discovery: Discovery;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: WatchObserver;
  readonly health: InformerHealth;
  /** Aborts when the source stops. */
  readonly signal: AbortSignal;
  /** Whether any object of the kind is known; only then does its removal matter. */
  known(): boolean;
  /** Called when discovery does not find the kind. */
  notServed(): void;
  /** The kind was removed with its objects. Resolves when every subscriber has been notified. */
  removed(): Promise<void>;
}

/** The kind that a source watches: finds it by discovery, waits while it is not served, and detects its removal. */
export class ServedKind {
  private readonly parts: ServedKindParts;
  private readonly voice: HealthReporter;
  private readonly setbacks: RetryState;
  private readonly removal: Removal;
  private found: Resource | undefined;
  /** The kind's plural, known once it has been served. */
  private plural: string | undefined;
  private search: Promise<Resource> | undefined;
  private missingBecause: RetryCause | undefined;
  /** True if the last discovery did not find the kind. */
  private absent = false;

  constructor(parts: ServedKindParts) {
    this.parts = parts;
    this.voice = parts.health.voice();
    this.setbacks = new RetryState({ ...parts, voice: this.voice });
    this.removal = new Removal(parts.transport, parts.clock);
  }

  /** The resource; `undefined` while it is unknown. */
  get resource(): Resource | undefined {
    return this.found;
  }

  /** Whether the last discovery did not find the kind: a subscriber that joins now exists before the kind does. */
  get isAbsent(): boolean {
    return this.absent;
  }

  /** Waits until the kind is served; all callers share one search. Rejects with the signal's reason. */
  served(signal: AbortSignal): Promise<Resource> {
    signal.throwIfAborted();
    if (this.found) return Promise.resolve(this.found);
    this.search ??= this.find();
    return abortable(this.search, signal);
  }

  /** Records the server's answer that there is no such collection. */
  lost(resource: Resource, cause: RetryCause): void {
    if (this.found !== resource) return;
    this.found = undefined;
    this.parts.discovery.invalidate(this.parts.spec.apiVersion);
    this.missingBecause = cause;
    this.voice.enter("missing", cause);
  }

  private async find(): Promise<Resource> {
    const { signal } = this.parts;
    try {
      for (;;) {
        signal.throwIfAborted();
        const resource = await this.look().catch((error) => this.failed(error));
        if (!resource) continue;
        this.removal.served();
        this.plural = resource.plural;
        this.found = resource;
        this.voice.silence();
        return resource;
      }
    } finally {
      this.search = undefined;
    }
  }

  /** Looks for the kind. Resolves with `undefined`, after a wait, if it is not served or cannot be watched. */
  private async look(): Promise<Resource | undefined> {
    const { discovery, spec, signal } = this.parts;
    const { missingBecause } = this;
    this.missingBecause = undefined;
    if (missingBecause) return this.missing(missingBecause);
    if (this.voice.state !== "missing") this.voice.enter("discovering");
    const lookup = await abortable(discovery.resolve(spec.apiVersion, spec.kind), signal);
    this.absent = lookup.type === "NotServed";
    if (lookup.type === "NotServed") {
      this.parts.notServed();
      return this.missing({ cause: "not_served", message: lookup.reason });
    }
    try {
      assertWatchable(lookup.resource);
      assertIn(spec.namespace, lookup.resource);
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      discovery.invalidate(spec.apiVersion);
      this.voice.enter("degraded", { cause: error.code, message: error.message, delayMs: degradedMs });
      await this.setbacks.sleep(degradedMs);
      return undefined;
    }
    return lookup.resource;
  }

  /** Waits while the kind is not served. Its objects count as deleted only once its definition is certainly gone. */
  private async missing(cause: RetryCause): Promise<undefined> {
    const { random, clock, signal } = this.parts;
    this.voice.enter("missing", cause);
    // Includes a kind that was removed while nobody watched: only the subscribers' positions show that it existed.
    if (this.parts.known() && (await abortable(this.removal.certain(this.definedKind), signal))) {
      await this.parts.removed();
    }
    await pause(clock, missingPollMs.from + random() * (missingPollMs.to - missingPollMs.from), signal);
  }

  private async failed(error: unknown): Promise<undefined> {
    this.parts.signal.throwIfAborted();
    const ending = endingOf(error);
    const lived = { timeoutSeconds: 0, lastedMs: 0, events: 0, bookmarks: 0 };
    const cause = causesOf(ending);
    const step = this.setbacks.judge({
      ending,
      phase: "list",
      lived,
      after: undefined,
      sinceListMs: Number.POSITIVE_INFINITY,
    });
    if (step.next === "resume" && step.wait === "backoff") await this.setbacks.backOff(cause, step.atLeastMs);
    else if (step.next === "forbidden") await this.setbacks.forbidden(cause);
    else if (step.next === "missing") await this.missing(cause);
    else await this.setbacks.backOff(cause);
  }

  private get definedKind(): DefinedKind {
    const { apiVersion, kind } = this.parts.spec;
    return { group: splitApiVersion(apiVersion).group, kind, plural: this.plural };
  }
}

/**
 * How long a definition must be absent to count as removed, with its objects, in milliseconds: one that is replaced is gone only
 * for a moment.
 */
const certainMs = 60_000;
const recheckMs = 20_000;

/**
 * Decides whether a kind that is no longer served was removed with its objects. Two checks a minute apart must both find no
 * CustomResourceDefinition. Any other result (it exists, it cannot be read, the server does not answer) is no proof.
 */
class Removal {
  private readonly transport: KubeTransport;
  private readonly clock: Clock;
  private absentSince: number | undefined;
  private lookedAt = Number.NEGATIVE_INFINITY;
  private reported = false;

  constructor(transport: KubeTransport, clock: Clock) {
    this.transport = transport;
    this.clock = clock;
  }

  /** Checks, if a check is due. @returns true once per removal, when it is certain. */
  async certain(of: DefinedKind): Promise<boolean> {
    const now = this.clock.monotonic();
    if (this.reported || now - this.lookedAt < recheckMs) return false;
    this.lookedAt = now;
    const presence: DefinitionPresence = await definitionPresence(this.transport, of).catch(() => "unknown");
    if (presence !== "absent") {
      this.absentSince = undefined;
      return false;
    }
    this.absentSince ??= now;
    this.reported = now - this.absentSince >= certainMs;
    return this.reported;
  }

  /** Records that the kind is served. */
  served(): void {
    this.absentSince = undefined;
    this.reported = false;
    this.lookedAt = Number.NEGATIVE_INFINITY;
  }
}
