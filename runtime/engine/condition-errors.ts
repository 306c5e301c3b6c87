import type { Clock } from "../base/clock.ts";
import type { EngineLog, EngineObserver } from "./delivery/observer.ts";
import type { ConditionError } from "./filter/conditions.ts";

/** The least interval between logs of one condition, in milliseconds: each event may fail it. */
const logEveryMs = 60_000;

/** How often a trigger's condition could not be evaluated since the start. */
export interface ConditionTrouble {
  readonly trigger: string;
  readonly condition: string;
  readonly count: number;
  /** The last error. */
  readonly message: string;
}

interface ErrorCount {
  count: number;
  message: string;
  logged: number;
  loggedAt: number;
}

interface ConditionErrorsParts {
  readonly functionName: string;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
}

/** Counts the errors of a function's conditions, logs them at intervals, and keeps them for the status. */
export class ConditionErrors {
  private readonly parts: ConditionErrorsParts;
  /** By trigger and condition, as in the manifest. */
  private readonly tallies = new Map<string, Map<string, ErrorCount>>();

  constructor(parts: ConditionErrorsParts) {
    this.parts = parts;
  }

  add(trigger: string, { condition, message, isUncertain }: ConditionError): void {
    const { functionName, clock, observer, log } = this.parts;
    observer.conditionError?.(functionName, trigger, condition, isUncertain ? "limit" : "error");
    const ofTrigger = this.tallies.get(trigger) ?? new Map<string, ErrorCount>();
    const tally = ofTrigger.get(condition) ?? { count: 0, message, logged: 0, loggedAt: Number.NEGATIVE_INFINITY };
    this.tallies.set(trigger, ofTrigger.set(condition, tally));
    tally.count++;
    tally.message = message;
    const now = clock.monotonic();
    if (now - tally.loggedAt < logEveryMs) return;
    const times = tally.count - tally.logged;
    tally.logged = tally.count;
    tally.loggedAt = now;
    log.warn(
      { function: functionName, trigger, condition, error: message, times, delivered: isUncertain },
      "condition not evaluated",
    );
  }

  list(): ConditionTrouble[] {
    return [...this.tallies].flatMap(([trigger, ofTrigger]) =>
      [...ofTrigger].map(([condition, { count, message }]) => ({ trigger, condition, count, message })),
    );
  }
}
