import { type Clock, pause, type Random } from "../clock.ts";
import { WatchfireError } from "../errors.ts";
import { abortable } from "../kube/abortable.ts";
import type { DefinedKind } from "../kube/cluster-facts.ts";
import { assertIn, assertWatchable, type Discovery, splitApiVersion } from "../kube/discovery.ts";
import type { Resource } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { isNewer, type ResourceVersion } from "../resource-version.ts";
import { Audience, type Mover } from "./audience.ts";
import { Backoff } from "./backoff.ts";
import { secondOpinionMs } from "./diff.ts";
import { causeOf, type Ending, endingOf, messageOf } from "./failure.ts";
import { Intake } from "./intake.ts";
import type { ListSlots } from "./list-slots.ts";
import { Liveness } from "./liveness.ts";
import type { SourceStatus, WatchObserver } from "./observer.ts";
import { Removal } from "./removal.ts";
import { RewindCheck } from "./rewind-check.ts";
import type { SourceSpec } from "./source-spec.ts";
import { Standing } from "./standing.ts";
import type { Subscriber } from "./subscriber.ts";
import { isOdd, judge, type Verdict } from "./verdict.ts";

/** A custom resource that appears is listed within 5 s of being established: ask a little more often than that. */
const missingPollMs = { from: 3000, to: 4000 };
const forbiddenMs = { from: 30_000, to: 60_000 };
const degradedMs = 300_000;
const soonMs = 1000;
const listInsteadMs = 3_600_000;

/** What a source is given. */
export interface SourceContext {
  readonly transport: KubeTransport;
  readonly discovery: Discovery;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: WatchObserver;
  readonly listSlots: ListSlots;
  /** Called whenever a stream runs, and everybody whom it serves has a position. */
  readonly streaming: (source: Source) => void;
}

/** A watch that runs. */
export interface Stream {
  readonly resource: Resource;
  /** Undefined: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string | undefined;
  /** Ends it and begins it again where it was: the server may refuse it by now. */
  readonly reconnect: () => void;
}

/**
 * One list and watch, kept up for as long as anybody listens. It finds the kind, reads what exists where a subscriber
 * needs that, follows changes from the last resourceVersion received, and comes back from every failure to where it
 * was; only history that is gone makes it list again. Its states are those of `SourceState`.
 */
export class Source {
  readonly spec: SourceSpec;
  private readonly context: SourceContext;
  private readonly audience = new Audience();
  private readonly standing: Standing;
  private readonly backoff: Backoff;
  private readonly liveness: Liveness;
  private readonly removal: Removal;
  private readonly intake: Intake;
  private readonly rewind: RewindCheck;
  private readonly stopping = new AbortController();
  private readonly poison = { after: "", count: 0 };
  private resource: Resource | undefined;
  /** The kind's plural, once it was served. */
  private plural: string | undefined;
  private listInsteadUntil = Number.NEGATIVE_INFINITY;
  private oddErrors = 0;
  private brokenInitials = 0;
  private lastByteAt: number | undefined;
  private running: Promise<void> | undefined;

  constructor(spec: SourceSpec, context: SourceContext) {
    this.spec = spec;
    this.context = context;
    this.standing = new Standing(spec, context.clock, context.observer);
    this.backoff = new Backoff(context.random);
    this.liveness = new Liveness(context.random);
    this.removal = new Removal(context.transport, context.clock);
    this.intake = new Intake({
      ...context,
      spec,
      audience: this.audience,
      standing: this.standing,
      liveness: this.liveness,
      signal: this.stopping.signal,
      streaming: () => context.streaming(this),
      // A position from before a restart may lie in the future of a cluster that was restored from a backup.
      doubtful: (resource, why) => {
        if (why === "older-bookmark" || this.rewind.due) this.rewind.ask(resource);
      },
    });
    this.rewind = new RewindCheck({
      ...context,
      spec,
      intake: this.intake,
      answered: (newest) => this.audience.serverIsAt(newest),
      signal: this.stopping.signal,
    });
  }

  /** Whether none of its listeners has a position. */
  get begins(): boolean {
    return this.audience.begins;
  }

  /** Up to where everything was received, while a stream runs. */
  get streamsAt(): ResourceVersion | undefined {
    return this.intake.session && this.intake.streams ? this.standing.received : undefined;
  }

  has(subscriber: Subscriber): boolean {
    return this.audience.has(subscriber);
  }

  /** Adds a listener; the first one starts the source. One that needs more than the stream holds makes it reconnect. */
  join(mover: Mover): void {
    const { streamsAt } = this;
    const { received } = this.standing;
    const resumeFrom = mover.at ?? mover.subscriber.resumeFrom;
    const served = this.audience.join(mover, streamsAt);
    // The stream would be silent for it until its position comes, which may be one that will never come.
    const ahead = received === undefined || isNewer(resumeFrom ?? received, received);
    // The source that it comes from may not have had its answer yet.
    if (mover.at !== undefined || (resumeFrom !== undefined && ahead)) this.rewind.due = true;
    if (streamsAt !== undefined && served && this.rewind.due && this.resource) this.rewind.ask(this.resource);
    this.running ??= this.run();
    if (streamsAt !== undefined && !served) this.intake.session?.end({ type: "closed", by: "join" });
  }

  /** Gives up its listeners, for another source; it is to be stopped. */
  moveOut(): Mover[] {
    return this.audience.moveOut(this.standing.received);
  }

  /** Gives up those who need a list that the others do not. */
  beginners(): Mover[] {
    const beginners = this.audience.beginners();
    if (beginners.some(({ expired }) => expired)) this.context.observer.gone(this.spec);
    return beginners;
  }

  /** Removes a listener. @returns how many are left; the others notice nothing. */
  leave(subscriber: Subscriber): number {
    this.audience.leave(subscriber);
    return this.audience.size;
  }

  /** Ends the source for good: its connection is closed and no timer is left when this resolves. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error("the source stops"));
    this.intake.session?.end({ type: "closed", by: "stop" });
    await this.running;
    await this.rewind.stop();
    this.standing.enter("stopped");
  }

  /** Undefined while none runs. */
  get stream(): Stream | undefined {
    const { session } = this.intake;
    if (!session || !this.resource || this.standing.state !== "watching") return undefined;
    return {
      resource: this.resource,
      namespace: this.spec.namespace,
      reconnect: () => session.end({ type: "closed", by: "revoked" }),
    };
  }

  status(): SourceStatus {
    return this.standing.status(this.intake.session?.lastByteAt ?? this.lastByteAt, this.audience.size);
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    // Those who subscribe in the same turn of the event loop are served by one connection.
    await Promise.resolve();
    while (!signal.aborted) {
      try {
        const resource = await this.served();
        if (resource) await this.connect(resource);
      } catch (error) {
        // Even if what is made of a failure fails itself, the loop goes on, and not in a spin.
        const reaction = this.react(endingOf(error), this.context.clock.monotonic(), 0);
        await reaction.catch(() => this.sleep(soonMs)).catch(() => {});
      }
    }
  }

  /** The resource, or undefined after a wait because there is none yet. */
  private async served(): Promise<Resource | undefined> {
    if (this.resource) return this.resource;
    const { discovery } = this.context;
    if (this.standing.state !== "missing") this.standing.enter("discovering");
    const lookup = await abortable(discovery.resolve(this.spec.apiVersion, this.spec.kind), this.stopping.signal);
    if (lookup.type === "NotServed") {
      this.audience.kindIsMissing();
      await this.missing("not_served", lookup.reason);
      return undefined;
    }
    try {
      assertWatchable(lookup.resource);
      assertIn(this.spec.namespace, lookup.resource);
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      discovery.invalidate(this.spec.apiVersion);
      this.standing.enter("degraded", { cause: error.code, message: error.message, delayMs: degradedMs });
      await this.sleep(degradedMs);
      return undefined;
    }
    this.removal.served();
    this.plural = lookup.resource.plural;
    this.resource = lookup.resource;
    return this.resource;
  }

  /** One list, or one connection of a watch, and what follows from how it ended. */
  private async connect(resource: Resource): Promise<void> {
    const began = this.context.clock.monotonic();
    const start = this.intake.relist ? ({ type: "list" } as const) : this.audience.start(this.standing.received);
    this.intake.bookmarks = 0;
    let ending: Ending | undefined;
    if (start.type === "watch") {
      ending = await this.intake.follow(resource, start.from);
    } else if (began >= this.listInsteadUntil) {
      ending = await this.intake.readInitialEvents(resource);
    } else {
      ending = await this.intake.readList(resource);
    }
    const lines = this.intake.session?.lines ?? 0;
    this.lastByteAt = this.intake.session?.lastByteAt ?? this.lastByteAt;
    this.intake.session = undefined;
    if (this.intake.phase === "live" && start.type === "list" && !this.audience.waiting) this.rewind.due = false;
    if (ending) await this.react(ending, began, lines);
  }

  private async react(ending: Ending, began: number, lines: number): Promise<void> {
    this.stopping.signal.throwIfAborted();
    const { clock, observer } = this.context;
    const lastedMs = clock.monotonic() - began;
    const cause = causeOf(ending);
    const message = messageOf(ending);
    this.standing.reconnected(cause);
    if (ending.type !== "closed" && ending.type !== "eof") this.standing.failed(cause, message);
    if (this.intake.phase === "live") this.liveness.ended(lastedMs, lines, this.intake.bookmarks);
    this.count(ending, lastedMs, lines);
    if (ending.type === "poison") observer.poisoned(this.spec, message);
    this.backoff.worked(lastedMs);
    this.standing.attempt = this.backoff.attempt;
    const { phase } = this.intake;
    const { count } = this.poison;
    const { oddErrors, brokenInitials } = this;
    const sinceListMs = clock.monotonic() - this.intake.listedAt;
    const history = { lastedMs, lines, phase, poisons: count, oddErrors, brokenInitials, sinceListMs };
    const verdict = judge(ending, history);
    if (this.resource && (this.suspectsRewind(ending) || this.liveness.suspicious)) {
      this.liveness.cleared();
      this.rewind.ask(this.resource);
    }
    await this.obey(verdict, { cause, message });
  }

  private async obey(verdict: Verdict, reason: { cause: string; message: string }): Promise<void> {
    const { random, clock, observer, discovery } = this.context;
    switch (verdict.next) {
      case "resume":
        if (verdict.wait === "soon") return this.sleep(random() * soonMs);
        return verdict.wait === "none" ? undefined : this.backOff(reason, verdict.atLeastMs);
      case "expired":
      case "relist":
        if (verdict.next === "expired" && this.intake.expire(verdict.oldest)) return undefined;
        this.intake.relist ??= "relist";
        observer.gone(this.spec);
        return verdict.wait === "none" ? undefined : this.backOff(reason);
      case "rewind":
        this.intake.relist = "rv-rewind";
        this.standing.enter("listing", reason);
        return undefined;
      case "second-opinion":
        this.intake.relist ??= "relist";
        this.standing.enter("backoff", { ...reason, delayMs: secondOpinionMs });
        return this.sleep(secondOpinionMs);
      case "list-instead":
        this.listInsteadUntil = clock.monotonic() + listInsteadMs;
        return undefined;
      case "missing":
        this.resource = undefined;
        discovery.invalidate(this.spec.apiVersion);
        return this.missing(reason.cause, reason.message);
      case "forbidden": {
        const delayMs = forbiddenMs.from + random() * (forbiddenMs.to - forbiddenMs.from);
        // The API server's own words name user, verb, resource and namespace.
        this.standing.enter("forbidden", { ...reason, cause: "Forbidden", delayMs });
        return this.sleep(delayMs);
      }
      case "degraded":
        this.standing.enter("degraded", { ...reason, delayMs: degradedMs });
        return this.sleep(degradedMs);
    }
  }

  private async backOff(reason: { cause: string; message: string }, atLeastMs = 0): Promise<void> {
    const delayMs = Math.max(this.backoff.next(), atLeastMs);
    this.standing.attempt = this.backoff.attempt;
    this.standing.enter("backoff", { ...reason, delayMs });
    await this.sleep(delayMs);
  }

  /** The kind is not served now. Its objects count as deleted only once its definition is certainly gone. */
  private async missing(cause: string, message: string): Promise<void> {
    this.standing.enter("missing", { cause, message });
    // Also of one that was removed while nobody watched: then only the subscribers' positions say that there was one.
    const { newest } = this.intake;
    if (newest !== undefined && (await abortable(this.removal.certain(this.definedKind), this.stopping.signal))) {
      const { received } = this.standing;
      this.intake.relist = "relist";
      // Asked again where a subscriber doubts it: the definition's absence is the second opinion.
      while (this.audience.list("crd-removed", received).end(newest) === "held") await this.sleep(secondOpinionMs);
    }
    const { random } = this.context;
    await this.sleep(missingPollMs.from + random() * (missingPollMs.to - missingPollMs.from));
  }

  private get definedKind(): DefinedKind {
    const { apiVersion, kind } = this.spec;
    return { group: splitApiVersion(apiVersion).group, kind, plural: this.plural };
  }

  /** Counts what is judged by how often it came in a row. */
  private count(ending: Ending, lastedMs: number, lines: number): void {
    if (ending.type === "poison") {
      const after = this.standing.received ?? "";
      this.poison.count = this.poison.after === after ? this.poison.count + 1 : 1;
      this.poison.after = after;
    }
    this.oddErrors = ending.type === "refused" && ending.inStream && isOdd(ending.error) ? this.oddErrors + 1 : 0;
    const accepted = ending.type === "eof" || (ending.type === "network" && lines > 0);
    if (this.intake.phase === "live") this.brokenInitials = 0;
    else if (this.intake.phase === "initial" && accepted) this.brokenInitials++;
    // The server may have been started anew, on other data; one that is stopped in good order ends its streams early.
    const stopped = ending.type === "eof" && this.liveness.wasCutShort(lastedMs);
    if (ending.type === "network" || stopped) this.rewind.due = true;
  }

  private suspectsRewind(ending: Ending): boolean {
    return ending.type === "refused" && ending.error.tooLargeResourceVersion;
  }

  private async sleep(ms: number): Promise<void> {
    if (ms > 0) await pause(this.context.clock, ms, this.stopping.signal);
  }
}
