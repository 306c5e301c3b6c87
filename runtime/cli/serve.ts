import { pause } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import type { RuntimeOptions } from "../host/components.ts";
import { type FleetOptions, FleetReplica } from "../host/fleet/fleet.ts";
import { Runtime } from "../host/runtime.ts";
import type { Status } from "../host/status.ts";
import { tuneEngine } from "../v8/engine.ts";
import { untilAborted } from "./signals.ts";

/** How long closing may take when the Lease or the store went to another, in milliseconds. */
const haltMs = 2_000;

/** Whatever runs functions in this process. */
export interface Served {
  readonly url: string;
  readonly lost: Promise<WatchfireError>;
  status(): Status;
  untilReady(signal: AbortSignal): Promise<void>;
  drain(): Promise<void>;
  halt(): Promise<void>;
}

/** As one of several replicas that share the functions. The rest is as with `serve`. */
export const serveFleet = (options: FleetOptions, stop: AbortSignal, begin: (served: Served) => Promise<void>) =>
  runUntil(FleetReplica.start(options, stop), options, stop, begin);

/**
 * Runs functions until `stop` aborts, and lets what runs finish. `begin` is what a command does with the runtime once it
 * has started.
 * @throws WatchfireError why it could not start, or why it lost the Lease or its data folder, be it while it drains
 */
export const serve = (options: RuntimeOptions, stop: AbortSignal, begin: (runtime: Runtime) => Promise<void>) =>
  runUntil(Runtime.start(options, stop), options, stop, begin);

async function runUntil<T extends Served>(
  started: Promise<T>,
  options: Pick<RuntimeOptions, "clock">,
  stop: AbortSignal,
  begin: (served: T) => Promise<void>,
): Promise<void> {
  const runtime = await unlessStopped(started, stop);
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
