import type { Clock } from "../base/clock.ts";
import { timedOut } from "./failure.ts";

/** A signal with a time limit. The caller must end it, which removes the timer and the listener. */
interface Deadline {
  readonly signal: AbortSignal;
  end(): void;
}

/** Aborts with a CallFailure of type TimeoutError after `ms`, or with the parent signal and its reason. */
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
