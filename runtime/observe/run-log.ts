import type { Redactor } from "../access/redactor.ts";
import type { Delivery, DeliveryListener, HandlerError, Outcome, Runner } from "../engine/delivery/delivery.ts";
import type { Logger } from "./log.ts";

/**
 * Wraps a runner so that each attempt is logged: successes at `successLevel`, failures as warnings with the error as its author
 * wrote it. Values of the function's Secrets are redacted from errors here, before they reach a log or a dead letter.
 */
export function loggedRunner(runner: Runner, log: Logger, redactor: Redactor, successLevel: "debug" | "info"): Runner {
  const lines = { log, redactor, successLevel };
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
}

/** Listens to one attempt and logs its end. A class, because closures for each event took 0.2 KB. */
class LoggedListener implements DeliveryListener {
  private readonly lines: Lines;
  private readonly delivery: Delivery;
  private readonly listener: DeliveryListener;

  constructor(lines: Lines, delivery: Delivery, listener: DeliveryListener) {
    this.lines = lines;
    this.delivery = delivery;
    this.listener = listener;
  }

  begins(): void {
    this.listener.begins();
  }

  ended(ended: Outcome): void {
    const { delivery } = this;
    const { log, redactor, successLevel } = this.lines;
    const outcome = redacted(ended, delivery.function, redactor);
    // An attempt that has not begun will run later, and is logged then.
    if (outcome.type === "ok") {
      if (log.isLevelEnabled(successLevel)) log[successLevel](fieldsOf(delivery, outcome), "handled");
    } else if (outcome.type !== "unbegun") log.warn(fieldsOf(delivery, outcome), messages[outcome.type]);
    this.listener.ended(outcome);
  }
}

const messages = {
  failed: "attempt failed",
  permanent: "attempt failed for good",
  interrupted: "attempt interrupted, since what it ran in has ended; it runs again, uncounted",
} as const;

function fieldsOf(delivery: Delivery, outcome: Exclude<Outcome, { type: "unbegun" }>): object {
  const { apiVersion, kind, namespace, name } = delivery.object;
  return {
    function: delivery.function,
    trigger: delivery.trigger,
    run: delivery.id,
    // A key's run may be caused by many changes, including those of other objects.
    type: delivery.causes ? "Reconcile" : delivery.type,
    object: `${apiVersion}/${kind} ${namespace ? `${namespace}/` : ""}${name}`,
    attempt: delivery.attempt,
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
