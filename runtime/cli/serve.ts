import type { RuntimeOptions } from "../rooms.ts";
import { Runtime } from "../runtime.ts";
import { untilAborted } from "./signals.ts";

/**
 * Runs functions until `stop` aborts, and lets what runs finish. `begin` is what a command does with the runtime once it
 * has started.
 * @throws WatchfireError why it could not start, or why it lost its data folder
 */
export async function serve(
  options: RuntimeOptions,
  stop: AbortSignal,
  begin: (runtime: Runtime) => Promise<void>,
): Promise<void> {
  const runtime = await unlessStopped(Runtime.start(options, stop), stop);
  if (!runtime) return;
  const begun = unlessStopped(begin(runtime), stop).then(() => untilAborted(stop));
  const lost = await Promise.race([begun, runtime.lost]);
  if (lost) throw lost;
  await runtime.drain();
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
