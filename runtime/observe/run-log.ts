import type { CallList } from "../access/observer.ts";
import type { Redactor } from "../access/redactor.ts";
import type { Clock } from "../base/clock.ts";
import type { Delivery, DeliveryListener, HandlerError, Outcome, Runner } from "../engine/delivery/delivery.ts";
import type { Logger } from "./log.ts";

/** An attempt that has begun and ended. */
export interface EndedRun
  extends Pick<
    Delivery,
    | "function"
    | "trigger"
    | "id"
    | "type"
    | "object"
    | "resourceVersion"
    | "attempt"
    | "redelivered"
    | "flags"
    | "cpuMs"
    | "heapBytes"
  > {
  readonly causes: Delivery["causes"];
  readonly batch: Delivery["batch"];
  /** When the event was received, its handler began, and it ended, in epoch milliseconds. */
  readonly receivedAt: number | undefined;
  readonly beganAt: number;
  readonly endedAt: number;
  /** Errors are redacted. */
  readonly outcome: Exclude<Outcome, { readonly type: "unbegun" }>;
  readonly calls: CallList | undefined;
  /** The id of its trace; `undefined` if it is not sampled. */
  readonly trace?: string | undefined;
  /** Copies of what it received, unless there was no room. Never of a Secret. For a batch: a list of its events. */
  readonly body: Buffer | undefined;
  readonly oldBody: Buffer | undefined;
}

/** Attempts for the history, until it takes them. Data without methods, because every event passes it. */
export interface RunCollector {
  readonly ended: EndedRun[];
  /** How much more it takes: an attempt counts 1, a failed one `failureWeight`. Attempts that do not fit are counted in `dropped`. */
  room: number;
  dropped: number;
  /** Bytes of bodies that it still takes. The last half is for attempts that failed. */
  bodyRoom: number;
  /** Number of quiet attempts by function: they succeeded at once and called nothing. Those beyond `mostQuiet` are only counted. */
  readonly quiet: Map<string, number>;
  passed: number;
  /** The calls of running attempts, by `runKey`. */
  readonly calls: Map<string, CallList>;
}

/** Returns the trace's id of an attempt that runs; `undefined` if it is not sampled. */
export type TraceOf = (attempt: Pick<Delivery, "function" | "id">) => string | undefined;

/** The share of a failed attempt, which has an error of up to 8,000 characters. */
const failureWeight = 16;

/** Bytes of bodies that a collector takes between two batches. */
export const mostBodyBytes = 2 ** 20;

/** Quiet attempts of one function that are taken until the next batch. An object for each of 10,000 a second costs a tenth of the CPU. */
const mostQuiet = 250;

/** Whether the API server selects a trigger's objects by label or by field. */
type IsSelective = (functionName: string, trigger: string) => boolean;

/** The reason of a deletion that the API server sends for an object that was deleted, and for one that is no longer selected. */
const deletedOrUnselected = "deleted, or no longer selected";

/** Identifies an attempt among those that run. */
export const runKey = ({ function: name, id }: Pick<Delivery, "function" | "id">): string => `${name}\n${id}`;

/**
 * Wraps a runner so that each attempt is logged: successes at `successLevel`, failures as warnings with the error as its author
 * wrote it. Values of the function's Secrets are redacted from errors here, before they reach a log, the history or a dead letter.
 * @param kept takes the attempts for the history. Default: there is no history.
 * @param traceOf returns the trace's id of an attempt. Default: there are no traces.
 * @param isSelective Default: no trigger has a selector.
 */
export function loggedRunner(
  runner: Runner,
  log: Logger,
  redactor: Redactor,
  successLevel: "debug" | "info",
  kept?: { readonly collector: RunCollector; readonly clock: Clock },
  traceOf?: TraceOf,
  isSelective: IsSelective = () => false,
): Runner {
  const lines = { log, redactor, successLevel, kept, traceOf, isSelective };
  return {
    recall: (functionName) => runner.recall(functionName),
    give: (delivery, listener) => runner.give(delivery, new LoggedListener(lines, delivery, listener)),
  };
}

/** Settings shared by all attempts' log lines. */
interface Lines {
  readonly log: Logger;
  readonly redactor: Redactor;
  readonly successLevel: "debug" | "info";
  readonly kept: { readonly collector: RunCollector; readonly clock: Clock } | undefined;
  readonly traceOf: TraceOf | undefined;
  readonly isSelective: IsSelective;
}

/** Listens to one attempt and logs its end. A class, because closures for each event took 0.2 KB. */
class LoggedListener implements DeliveryListener {
  private readonly lines: Lines;
  private readonly delivery: Delivery;
  private readonly listener: DeliveryListener;
  /** In epoch milliseconds. */
  private beganAt = 0;

  constructor(lines: Lines, delivery: Delivery, listener: DeliveryListener) {
    this.lines = lines;
    this.delivery = delivery;
    this.listener = listener;
  }

  begins(): void {
    if (this.lines.kept) this.beganAt = this.lines.kept.clock.now();
    this.listener.begins();
  }

  ended(ended: Outcome): void {
    const { delivery } = this;
    const { log, redactor, successLevel, kept } = this.lines;
    const outcome = redacted(ended, delivery.function, redactor);
    // An attempt that has not begun will run later, and is logged then.
    if (outcome.type === "ok") {
      if (log.isLevelEnabled(successLevel)) log[successLevel](fieldsOf(delivery, outcome, this.lines), "handled");
    } else if (outcome.type !== "unbegun") log.warn(fieldsOf(delivery, outcome, this.lines), messages[outcome.type]);
    if (kept) {
      const { collector, clock } = kept;
      let calls: CallList | undefined;
      if (collector.calls.size > 0) {
        const key = runKey(delivery);
        calls = collector.calls.get(key);
        collector.calls.delete(key);
      }
      // An attempt whose executor ended before it began has not run.
      if (outcome.type !== "unbegun" && (outcome.type !== "interrupted" || this.beganAt > 0)) {
        let quiet = 0;
        if (outcome.type === "ok" && !calls && delivery.attempt === 1 && !delivery.redelivered && !delivery.batch) {
          quiet = (collector.quiet.get(delivery.function) ?? 0) + 1;
          if (quiet <= mostQuiet) collector.quiet.set(delivery.function, quiet);
        }
        if (quiet > mostQuiet) collector.passed++;
        else if (collector.room > 0) {
          collector.room -= outcome.type === "ok" ? 1 : failureWeight;
          // The stack of an error is mapped after the end, which takes some milliseconds.
          const now = clock.now();
          const endedAt =
            this.beganAt > 0 && "durationMs" in outcome ? Math.min(now, this.beganAt + outcome.durationMs) : now;
          const { body, oldBody } = delivery;
          const bytes = body.length + (oldBody?.length ?? 0);
          const spare = outcome.type === "ok" ? mostBodyBytes / 2 : 0;
          const isSecret = delivery.object.kind === "Secret" && delivery.object.apiVersion === "v1";
          const isKept = body.length > 0 && bytes <= collector.bodyRoom - spare && !isSecret;
          if (isKept) collector.bodyRoom -= bytes;
          collector.ended.push({
            function: delivery.function,
            trigger: delivery.trigger,
            id: delivery.id,
            type: delivery.type,
            object: delivery.object,
            resourceVersion: delivery.resourceVersion,
            attempt: delivery.attempt,
            redelivered: delivery.redelivered,
            flags: delivery.flags,
            causes: delivery.causes,
            batch: delivery.batch,
            receivedAt: delivery.receivedAt,
            beganAt: this.beganAt === 0 ? endedAt : this.beganAt,
            endedAt,
            outcome,
            calls,
            trace: this.lines.traceOf?.(delivery),
            cpuMs: delivery.cpuMs,
            heapBytes: delivery.heapBytes,
            // The body may be a part of a larger buffer, which a reference would keep in memory.
            body: isKept ? Buffer.from(body) : undefined,
            oldBody: isKept && oldBody ? Buffer.from(oldBody) : undefined,
          });
        } else collector.dropped++;
      }
    }
    this.listener.ended(outcome);
  }
}

const messages = {
  failed: "attempt failed",
  permanent: "attempt failed for good",
  interrupted: "attempt interrupted, because its executor ended; it runs again, uncounted",
} as const;

function fieldsOf(
  delivery: Delivery,
  outcome: Exclude<Outcome, { type: "unbegun" }>,
  { traceOf, isSelective }: Lines,
): object {
  const trace = traceOf?.(delivery);
  const { type, flags, causes } = delivery;
  const isUnclear =
    type === "Deleted" && !causes && !flags.synthetic && isSelective(delivery.function, delivery.trigger);
  const reason = isUnclear ? deletedOrUnselected : flags.reason;
  const { apiVersion, kind, namespace, name } = delivery.object;
  return {
    function: delivery.function,
    trigger: delivery.trigger,
    run: delivery.id,
    // A key's run may be caused by many changes, including those of other objects.
    type: causes ? "Reconcile" : type,
    ...(reason !== undefined && { reason }),
    object: `${apiVersion}/${kind} ${namespace ? `${namespace}/` : ""}${name}`,
    attempt: delivery.attempt,
    ...(trace !== undefined && { trace }),
    outcome: outcome.type,
    ...(outcome.type === "interrupted" ? {} : { durationMs: Math.round(outcome.durationMs * 10) / 10 }),
    ...("error" in outcome ? { error: outcome.error } : {}),
  };
}

function redacted(outcome: Outcome, functionName: string, redactor: Redactor): Outcome {
  if (!("error" in outcome)) return outcome;
  const { name, message, stack } = outcome.error;
  const error: HandlerError = {
    ...outcome.error,
    name: redactor.redact(functionName, name),
    message: redactor.redact(functionName, message),
    stack: redactor.redact(functionName, stack),
  };
  return { ...outcome, error };
}
