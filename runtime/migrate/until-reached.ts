import { type Clock, pause } from "../base/clock.ts";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { passingCodes } from "../journal/nats/fault.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Logger } from "../observe/log.ts";

/** Faults that end without this process. */
const passingFaults: ReadonlySet<string> = new Set<ErrorCode>([
  "WF_CHECKPOINT_LOCKED",
  ...passingCodes,
  "WF_CHECKPOINT_UNPLACED",
  "WF_KUBE_UNREACHABLE",
]);

/** Interval of retries, in milliseconds, while another process holds the data folder, or the API server does not answer. */
const againMs = 1_000;

interface RetryOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with the reason for waiting, and the fault if it has a code; with `undefined` when the wait ends. */
  readonly waiting?: ((why: string | undefined, fault?: WatchfireError) => void) | undefined;
}

/** Retries `open` while the data folder is locked or the API server does not answer, as long as the Lease is held. */
export async function untilReached<T>(
  { clock, log, waiting }: RetryOptions,
  signal: AbortSignal,
  open: () => Promise<T>,
): Promise<T> {
  for (let logged = ""; ; ) {
    try {
      const opened = await open();
      waiting?.(undefined);
      return opened;
    } catch (error) {
      // The process of a pod that was deleted by force may still end. The kernel then frees its lock.
      const code = error instanceof WatchfireError ? error.code : undefined;
      const passing = error instanceof ApiError && (error.status >= 500 || error.status === 429);
      if (!passing && !passingFaults.has(code ?? "")) throw error;
      const message = error instanceof Error ? error.message : String(error);
      if (message !== logged) log.warn({ error: message }, "checkpoints cannot be opened yet");
      logged = message;
      waiting?.(message, error instanceof WatchfireError ? error : undefined);
    }
    await pause(clock, againMs, signal);
  }
}
