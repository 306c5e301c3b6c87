import { pause } from "../base/clock.ts";
import { clusterIdentity } from "../kube/cluster-facts.ts";
import { contactFault } from "../kube/contact-fault.ts";
import type { RuntimeOptions } from "./components.ts";

/** Waiting for a cluster that does not answer at the start: as often as a source would try at its slowest. */
const clusterRetryMs = 5_000;
/** An API server that has just started answers 403 until it has read its own roles: so long is it asked again, in milliseconds. */
const refusedRetriesMs = [1_000, 2_000];

/** Undefined where the cluster does not let its uid be read, which is said. `waiting`: told why it cannot be asked, and of the end. */
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
          "grant `get` on the namespace kube-system, or positions of another cluster are taken for this one's";
        log.warn({ cluster: transport.description, error: identity.message, hint }, "cluster's identity unknown");
        return undefined;
      }
    } catch (error) {
      signal.throwIfAborted();
      const fault = contactFault(error, transport.description);
      if (fault.blame === "user" && interactive) throw fault;
      waiting(fault.message);
      const message = fault.blame === "user" ? "cluster cannot be used as it is" : "cluster does not answer yet";
      log.warn({ cluster: transport.description, error: fault.message }, message);
      await pause(clock, clusterRetryMs, signal);
    }
  }
}
