import type { Runner } from "../engine/delivery/delivery.ts";
import { lostError } from "../lease/elector.ts";
import type { HostCallError } from "../sandbox/host-calls.ts";

/** What says whether this replica may act: the Lease of all functions, or of a slot. */
export interface LeaseHold {
  readonly holds: boolean;
}

/**
 * Begins attempts only while the Lease is held. A process that was stopped and goes on after its Lease went to another
 * finds out here, before anything else.
 */
export const runnerWhileHeld = (runner: Runner, elector: LeaseHold): Runner => ({
  give: (delivery, listener) => {
    if (elector.holds) runner.give(delivery, listener);
    else queueMicrotask(() => listener.ended({ type: "interrupted" }));
  },
  recall: (functionName) => runner.recall(functionName),
});

/** Makes guests' calls only while the Lease is held: what a handler asks for after that, another replica's handler does. */
export const withheldBy = (elector: LeaseHold) => (): HostCallError | undefined => {
  if (elector.holds) return undefined;
  return { type: "TimeoutError", message: lostError("the call was not made").message, status: 0, reason: "LeaseLost" };
};

/** Keeps what the runtime writes in its own name from leaving once the Lease is not held. */
export const unlessHeld = (elector: LeaseHold) => (): Error | undefined =>
  elector.holds ? undefined : lostError("what was to be written was not");
