import type { Redactor } from "../access/redactor.ts";
import type { Delivery, DeliveryListener, HandlerError, Outcome, Runner } from "../dispatch/delivery/delivery.ts";
import type { Logger } from "./log.ts";

/**
 * The runner, with a line for each attempt: successes at `successLevel`, failures as warnings with the error as its author
 * wrote it. Values of the function's Secrets are cut out of errors here, before they reach a log or a dead letter.
 */
export function loggedRunner(runner: Runner, log: Logger, redactor: Redactor, successLevel: "debug" | "info"): Runner {
  return {
    recall: (functionName) => runner.recall(functionName),
    give: (delivery, listener) => {
      const said = (outcome: Outcome) => {
        // It comes again, and is logged then.
        if (outcome.type === "unbegun") return;
        if (outcome.type === "ok") {
          if (log.isLevelEnabled(successLevel)) log[successLevel](fieldsOf(delivery, outcome), "handled");
        } else log.warn(fieldsOf(delivery, outcome), messages[outcome.type]);
      };
      runner.give(delivery, new LoggedDelivery(delivery.function, listener, redactor, said));
    },
  };
}

/** A delivery's listener, which is told after the log was. */
class LoggedDelivery implements DeliveryListener {
  private readonly functionName: string;
  private readonly listener: DeliveryListener;
  private readonly redactor: Redactor;
  private readonly log: (outcome: Outcome) => void;

  constructor(functionName: string, listener: DeliveryListener, redactor: Redactor, log: (outcome: Outcome) => void) {
    this.functionName = functionName;
    this.listener = listener;
    this.redactor = redactor;
    this.log = log;
  }

  begins(): void {
    this.listener.begins();
  }

  ended(outcome: Outcome): void {
    const said = redacted(outcome, this.functionName, this.redactor);
    this.log(said);
    this.listener.ended(said);
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
    // What woke a key may be many changes, of other objects as well.
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
