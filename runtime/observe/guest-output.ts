import type { Redactor } from "../access/redactor.ts";
import { cut } from "../base/wording.ts";
import type { LoopAccounts } from "../engine/account/loop-time.ts";
import type { GuestOutput } from "../sandbox/host-calls.ts";
import type { Logger } from "./log.ts";
import type { LogLimit } from "./log-limit.ts";
import type { LineDropped } from "./log-writer.ts";
import type { TraceOf } from "./run-log.ts";
import type { UserMetrics } from "./user-metrics.ts";

/**
 * Creates the destination of handlers' log lines and metrics. A line contains the function, the event and the handler's fields,
 * which are nested so that they cannot imitate the runtime's own. Values of the function's Secrets are redacted. Lines above the
 * function's rate limit are counted, and periodically logged as dropped.
 */
export function guestOutput(
  log: Logger,
  metrics: UserMetrics,
  redactor: Redactor,
  limit?: LogLimit,
  dropped?: LineDropped,
  traceOf?: TraceOf,
): GuestOutput {
  return {
    admits({ function: name }, what, length) {
      if (what !== "log") return true;
      const isAdmitted = limit?.admits(name, length) ?? true;
      const lines = limit?.takeDropped(name) ?? 0;
      if (lines > 0) log.warn({ function: name, lines }, "lines of a handler's log were dropped");
      if (!isAdmitted) dropped?.(name, "rate");
      return isAdmitted;
    },
    log(caller, level, message, fields) {
      const { function: name, trigger, id, attempt, object } = caller;
      const trace = traceOf?.(caller);
      log[level](
        {
          function: name,
          trigger,
          run: id,
          attempt,
          ...(trace !== undefined && { trace }),
          object: object.namespace ? `${object.namespace}/${object.name}` : object.name,
          fields: redactor.redactData(name, fields),
        },
        redactor.redact(name, message),
      );
    },
    metric(caller, type, called, value, labels) {
      const name = redactor.redact(caller.function, called);
      const why = metrics.record(caller.function, type, name, value, redactor.redactData(caller.function, labels));
      if (why === undefined || !metrics.isNews(caller.function, name)) return;
      log.warn({ function: caller.function, metric: cut(name, 100), reason: why }, "metric refused");
    },
  };
}

/** Milliseconds that it takes to look at a character, and to clean it and make it a value. */
const characterMs = { seen: 0.000_005, read: 0.000_02 };

/** The same, with the time that it takes on the accounts of the functions. */
export function accounted(output: GuestOutput, time: LoopAccounts): GuestOutput {
  return {
    admits: (caller, what, length) => {
      const isAdmitted = output.admits?.(caller, what, length) ?? true;
      const work = what === "error" ? "errors" : "logs";
      time.of(caller.function)?.charge(work, length * (isAdmitted ? characterMs.read : characterMs.seen));
      return isAdmitted;
    },
    log(caller, ...line) {
      const account = time.of(caller.function);
      const began = account?.begin() ?? 0;
      try {
        output.log(caller, ...line);
      } finally {
        account?.end("logs", began);
      }
    },
    metric(caller, ...figure) {
      const write = () => output.metric(caller, ...figure);
      const account = time.of(caller.function);
      if (account) account.measure("logs", write);
      else write();
    },
  };
}
