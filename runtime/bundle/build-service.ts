import type { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type BuildFailure, type BuildOptions, type BuildResult, build, stop } from "esbuild";
import { WatchfireError } from "../base/errors.ts";

type Exact<O extends BuildOptions> = Parameters<typeof build<O>>[0];

/** Repetitions of a build because esbuild's process ended during it. */
const rebuilds = 2;

/** Milliseconds without a build after which esbuild's process is ended: it takes 60 MB, and wakes this process each second. */
const idleMs = 1000;

/** esbuild's process. It starts with the first build and serves all builds; esbuild itself does not restart it when it dies. */
let service: ChildProcess | undefined;
/** Number of builds in progress. A plugin may build within a build. */
let builds = 0;
let ending: NodeJS.Timeout | undefined;
/** Chain of repeated builds, which run one after the other, so that a build that ends the process each time fails alone. */
let anew: Promise<unknown> = Promise.resolve();

// If its parent disappears during a build, the Go program would print the stacks of all its goroutines.
process.on("exit", () => service?.kill("SIGKILL"));

/**
 * esbuild's `build`, which survives the end of esbuild's process: a terminal's Ctrl-C reaches it too, and the kernel may kill it
 * when memory is short. The process ends after a second without a build; the next one starts it again. So no other code of this
 * process may call esbuild's `build`: its process could end amid it.
 * @throws BuildFailure as `build` does
 * @throws WatchfireError WF_BUNDLE_BROKEN_OFF if its process ended during this build each time
 */
export async function buildInService<O extends BuildOptions>(options: Exact<O>): Promise<BuildResult<O>> {
  builds++;
  clearTimeout(ending);
  try {
    return await untilBuilt(options);
  } finally {
    if (--builds === 0) ending = setTimeout(stop, idleMs).unref();
  }
}

/** Repeats a build whose process ended. */
async function untilBuilt<O extends BuildOptions>(options: Exact<O>): Promise<BuildResult<O>> {
  const first = await attempt(options);
  if (first.result) return first.result;
  let { cause } = first;
  for (let left = rebuilds; left > 0; left--) {
    const again = anew.then(() => attempt(options));
    anew = again.catch(() => undefined);
    const { result, cause: latest } = await again;
    if (result) return result;
    cause = latest;
  }
  const what = `esbuild's process ended during this build, ${rebuilds + 1} times: ${cause?.message}`;
  throw new WatchfireError("WF_BUNDLE_BROKEN_OFF", { what, cause });
}

/** Runs one build, or returns why its process could not complete it. */
async function attempt<O extends BuildOptions>(
  options: Exact<O>,
): Promise<{ readonly result?: BuildResult<O>; readonly cause?: Error }> {
  const building = begin(options);
  const used = service;
  try {
    return { result: await building };
  } catch (error) {
    if (!(error instanceof Error) || (error as Partial<BuildFailure>).errors) throw error;
    // The first of the affected builds clears the dead service away.
    if (used === service) await stop();
    return { cause: error };
  }
}

/** Begins a build, and records the process if this build starts it. */
function begin<O extends BuildOptions>(options: Exact<O>): Promise<BuildResult<O>> {
  const note = (message: unknown): void => {
    service = (message as { process: ChildProcess }).process;
  };
  subscribe("child_process", note);
  try {
    return build<O>(options);
  } finally {
    unsubscribe("child_process", note);
  }
}
