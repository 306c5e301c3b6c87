import type { Runner } from "./dispatch/delivery.ts";
import type { Elector } from "./lease/elector.ts";
import { lostError } from "./lease/elector.ts";
import type { HostCalls } from "./sandbox/host-calls.ts";

/**
 * Begins attempts only while the Lease is held. A process that was stopped and goes on after its Lease went to another
 * finds out here, before anything else.
 */
export const runnerWhileHeld = (runner: Runner, elector: Elector): Runner => ({
  run: (delivery) => (elector.holds ? runner.run(delivery) : Promise.resolve({ type: "interrupted" })),
});

/** Answers guests only while the Lease is held: what a handler asks for after that, another replica's handler does. */
export const callsWhileHeld = (calls: HostCalls, elector: Elector): HostCalls => ({
  call(caller, operation, args, signal) {
    if (elector.holds) return calls.call(caller, operation, args, signal);
    const { message } = lostError("the call was not made");
    return Promise.resolve({ ok: false, error: { type: "TimeoutError", message, status: 0, reason: "LeaseLost" } });
  },
});
