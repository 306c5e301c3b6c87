import { pause } from "../base/clock.ts";
import type { RuntimeOptions } from "../host/components.ts";
import { Host } from "../host/host.ts";
import { tuneEngine } from "../v8/engine.ts";
import { untilAborted } from "./signals.ts";

/** How long closing may take after the Lease or the store was lost, in milliseconds. */
const haltMs = 2_000;

/**
 * Runs functions until `stop` aborts, then lets running handlers finish. `begin`: the command's work with the started runtime.
 * @throws WatchfireError why it could not start, or why it lost the Lease or its data folder, also while it drains
 */
export async function serve(
  options: RuntimeOptions,
  stop: AbortSignal,
  begin: (runtime: Host) => Promise<void>,
): Promise<void> {
  const runtime = await unlessStopped(Host.start(options, stop), stop);
  if (!runtime) return;
  const endTuning = tuneEngine();
  const begun = unlessStopped(begin(runtime), stop).then(() => untilAborted(stop));
  const lost = await Promise.race([begun, runtime.lost]).finally(endTuning);
  if (lost) {
    // Nothing more may happen. Whatever does not close in time ends with the process.
    await Promise.race([runtime.halt().catch(() => undefined), pause(options.clock, haltMs)]);
    throw lost;
  }
  await runtime.drain();
  const lostSince = await Promise.race([runtime.lost, undefined]);
  if (lostSince) throw lostSince;
}

/** Returns `undefined` instead of the error of a step that was stopped. */
async function unlessStopped<T>(step: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  try {
    return await step;
  } catch (error) {
    if (!stop.aborted) throw error;
    return undefined;
  }
}
