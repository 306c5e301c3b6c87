import { pause } from "../base/clock.ts";
import { clusterIdentity } from "../kube/cluster-facts.ts";
import { contactFault } from "../kube/contact-fault.ts";
import type { RuntimeOptions } from "./components.ts";

/** Interval of retries while the cluster does not answer at the start, in milliseconds: the maximum backoff of an informer. */
const clusterRetryMs = 5_000;
/**
 * Delays of the retries after a 403, in milliseconds. An API server that has just started answers 403 until it has read its
 * roles.
 */
const refusedRetriesMs = [1_000, 2_000];

/**
 * Returns the cluster's uid. `undefined`, with a warning, if it may not be read. `waiting`: called with the reason for waiting,
 * and with `undefined` when the wait ends.
 */
export async function recogniseCluster(
  { transport, clock, log, interactive }: Pick<RuntimeOptions, "transport" | "clock" | "log" | "interactive">,
  signal: AbortSignal,
  waiting: (why: string | undefined) => void,
): Promise<string | undefined> {
  for (let refusals = 0; ; ) {
    try {
      const identity = await clusterIdentity(transport, signal);
      waiting(undefined);
      if (identity.uid !== undefined) return identity.uid;
      const waitMs = identity.status === 403 ? refusedRetriesMs[refusals++] : undefined;
      if (waitMs !== undefined) await pause(clock, waitMs, signal);
      else {
        const hint =
          "grant `get` on the namespace kube-system, otherwise checkpoints of another cluster may be used for this one";
        log.warn({ cluster: transport.description, error: identity.message, hint }, "cluster's identity unknown");
        return undefined;
      }
    } catch (error) {
      signal.throwIfAborted();
      const fault = contactFault(error, transport.description);
      if (fault.blame === "user" && interactive) throw fault;
      waiting(fault.message);
      const message = fault.blame === "user" ? "cluster cannot be used" : "cluster does not answer yet";
      log.warn({ cluster: transport.description, error: fault.message }, message);
      await pause(clock, clusterRetryMs, signal);
    }
  }
}
