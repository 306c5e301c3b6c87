import { type Clock, pause, type Random } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { WatchObserver } from "../fanout/observer.ts";
import type { SourceSpec } from "../fanout/source-spec.ts";
import { Backoff, forbiddenCurve } from "./backoff.ts";
import { causeOf, type Ending, messageOf } from "./failure.ts";
import type { HealthReporter, InformerHealth } from "./informer-health.ts";
import type { ConnectionStats } from "./liveness.ts";
import { isOdd, judge, type NextStep, type SessionHistory } from "./next-step.ts";

/** Reason for a retry or a state: a short name, and a description. */
export interface RetryCause {
  readonly cause: string;
  readonly message: string;
}

export const causesOf = (ending: Ending): RetryCause => ({ cause: causeOf(ending), message: messageOf(ending) });

/** Delay before a retry that is unlikely to succeed until somebody changes something, in milliseconds. */
export const degradedMs = 300_000;
/**
 * Longest random delay after a stream that ended in good order, in milliseconds, so that sources do not reconnect all at once.
 */
const soonMs = 1000;

interface RetryStateParts {
  readonly spec: SourceSpec;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: WatchObserver;
  readonly health: InformerHealth;
  readonly voice: HealthReporter;
  /** Aborts every wait. */
  readonly signal: AbortSignal;
}

/** Description of what ended. */
interface RetryNotice {
  readonly ending: Ending;
  readonly phase: SessionHistory["phase"];
  readonly lived: ConnectionStats;
  /** The resourceVersion up to which everything had been received. */
  readonly after: ResourceVersion | undefined;
  /** Milliseconds since the last complete list. */
  readonly sinceListMs: number;
}

/** Failure history of a stream or the lister, and its waits before a retry. */
export class RetryState {
  private readonly parts: RetryStateParts;
  private readonly backoff: Backoff;
  private readonly refusals: Backoff;
  private readonly poison = { after: "", count: 0 };
  private oddErrors = 0;
  private brokenInitials = 0;

  constructor(parts: RetryStateParts) {
    this.parts = parts;
    this.backoff = new Backoff(parts.clock, parts.random);
    this.refusals = new Backoff(parts.clock, parts.random, forbiddenCurve);
  }

  /** Records and reports an ending. @returns the step to take. */
  judge({ ending, phase, lived, after, sinceListMs }: RetryNotice): NextStep {
    const { health, observer, spec, voice } = this.parts;
    const { cause, message } = causesOf(ending);
    health.reconnected(cause);
    if (ending.type !== "closed" && ending.type !== "eof") health.failed(cause, message);
    if (ending.type === "poison") {
      observer.poisoned(spec, message);
      this.poison.count = this.poison.after === (after ?? "") ? this.poison.count + 1 : 1;
      this.poison.after = after ?? "";
    }
    this.oddErrors = ending.type === "refused" && ending.inStream && isOdd(ending.error) ? this.oddErrors + 1 : 0;
    const broke = phase === "initial" && isBreak(ending, lived);
    if (broke) this.brokenInitials++;
    voice.attempt = this.backoff.attempt;
    const { oddErrors } = this;
    const brokenInitials = broke ? this.brokenInitials : 0;
    const { lastedMs, events } = lived;
    return judge(ending, {
      lastedMs,
      events,
      phase,
      poisons: this.poison.count,
      oddErrors,
      brokenInitials,
      sinceListMs,
    });
  }

  /** Records a success: a list is complete or a stream is open. */
  worked(): void {
    this.refusals.reset();
    this.brokenInitials = 0;
  }

  /** Waits as a `resume` step says. */
  async resume({ wait, atLeastMs }: Extract<NextStep, { next: "resume" }>, cause: RetryCause): Promise<void> {
    if (wait === "soon") await this.sleep(this.parts.random() * soonMs);
    else if (wait === "backoff") await this.backOff(cause, atLeastMs);
  }

  async backOff(cause: RetryCause, atLeastMs = 0): Promise<void> {
    const delayMs = Math.max(this.backoff.next(), atLeastMs);
    this.parts.voice.attempt = this.backoff.attempt;
    this.parts.voice.enter("backoff", { ...cause, delayMs });
    await this.sleep(delayMs);
  }

  /** Reports `forbidden` with the API server's own message, which names user, verb, resource and namespace, and waits. */
  async forbidden({ message }: RetryCause): Promise<void> {
    const delayMs = this.refusals.next();
    this.parts.voice.attempt = this.refusals.attempt;
    this.parts.voice.enter("forbidden", { cause: "Forbidden", message, delayMs });
    await this.sleep(delayMs);
  }

  async degraded(cause: RetryCause): Promise<void> {
    this.parts.voice.enter("degraded", { ...cause, delayMs: degradedMs });
    await this.sleep(degradedMs);
  }

  async sleep(ms: number): Promise<void> {
    if (ms > 0) await pause(this.parts.clock, ms, this.parts.signal);
  }
}

/** Whether a WatchList was answered and then broke off, or was answered with something else. */
function isBreak(ending: Ending, { events }: ConnectionStats): boolean {
  switch (ending.type) {
    case "eof":
    case "poison":
    case "protocol":
      return true;
    case "network":
      return events > 0;
    case "refused":
      return ending.inStream;
    default:
      return false;
  }
}
