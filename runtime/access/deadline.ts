import type { Clock } from "../base/clock.ts";
import { timedOut } from "./failure.ts";

/** A signal that must be ended, so that neither its timer nor its listener remains. */
interface Deadline {
  readonly signal: AbortSignal;
  end(): void;
}

/** Aborts with a TimeoutError after `ms`, or when the parent signal aborts. */
export function deadline(clock: Clock, ms: number, parent: AbortSignal): Deadline {
  const controller = new AbortController();
  const timer = clock.after(ms, () => controller.abort(timedOut(`no answer within ${ms} ms`)));
  const onAbort = () => controller.abort(parent.reason);
  if (parent.aborted) onAbort();
  else parent.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    end() {
      timer.cancel();
      parent.removeEventListener("abort", onAbort);
    },
  };
}
