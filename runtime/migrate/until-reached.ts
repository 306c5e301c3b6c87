import { type Clock, pause } from "../base/clock.ts";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { passingCodes } from "../journal/nats/fault.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Logger } from "../observe/log.ts";

/** Faults that somebody else ends. */
const passingFaults: ReadonlySet<string> = new Set<ErrorCode>([
  "WF_CHECKPOINT_LOCKED",
  ...passingCodes,
  "WF_CHECKPOINT_UNPLACED",
  "WF_KUBE_UNREACHABLE",
]);

/** How often a data folder that another process still holds, or an API server that does not answer, is tried; milliseconds. */
const againMs = 1_000;

interface RetryOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Told why it has to be waited for, where that is so, and of its end; and the fault, where it has a code. */
  readonly waiting?: ((why: string | undefined, fault?: WatchfireError) => void) | undefined;
}

/** Waits for a data folder that is locked and for an API server that does not answer, for as long as the Lease is held. */
export async function untilReached<T>(
  { clock, log, waiting }: RetryOptions,
  signal: AbortSignal,
  open: () => Promise<T>,
): Promise<T> {
  for (let told = ""; ; ) {
    try {
      const opened = await open();
      waiting?.(undefined);
      return opened;
    } catch (error) {
      // The process of a pod that was deleted by force may still end; the kernel then frees its lock.
      const code = error instanceof WatchfireError ? error.code : undefined;
      const passing = error instanceof ApiError && (error.status >= 500 || error.status === 429);
      if (!passing && !passingFaults.has(code ?? "")) throw error;
      const message = error instanceof Error ? error.message : String(error);
      if (message !== told) log.warn({ error: message }, "positions cannot be opened yet");
      told = message;
      waiting?.(message, error instanceof WatchfireError ? error : undefined);
    }
    await pause(clock, againMs, signal);
  }
}
