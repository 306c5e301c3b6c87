import { pause } from "../base/clock.ts";
import type { RuntimeOptions } from "../host/components.ts";
import { Host } from "../host/host.ts";
import { tuneEngine } from "../v8/engine.ts";
import { untilAborted } from "./signals.ts";

/** How long closing may take when the Lease or the store went to another, in milliseconds. */
const haltMs = 2_000;

/**
 * Runs functions until `stop` aborts, and lets what runs finish. `begin` is what a command does with the runtime once it
 * has started.
 * @throws WatchfireError why it could not start, or why it lost the Lease or its data folder, be it while it drains
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
    // Nothing may happen any more; what does not close in time ends with the process.
    await Promise.race([runtime.halt().catch(() => undefined), pause(options.clock, haltMs)]);
    throw lost;
  }
  await runtime.drain();
  const lostSince = await Promise.race([runtime.lost, undefined]);
  if (lostSince) throw lostSince;
}

/** Undefined in place of the error of a step that was told to stop. */
async function unlessStopped<T>(step: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  try {
    return await step;
  } catch (error) {
    if (!stop.aborted) throw error;
    return undefined;
  }
}
