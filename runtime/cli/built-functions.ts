import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { openCode } from "../catalog/function-code.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { Trial } from "../sandbox/host/trial.ts";

/** What came of one function: its code, or why it cannot be built or loaded. */
export interface BuildOutcome {
  readonly manifest: FunctionManifest;
  /** Undefined where there are faults. */
  readonly bundle: Bundle | undefined;
  readonly faults: readonly WatchfireError[];
}

/**
 * Builds every function of a folder, unless they are built already, and loads it in a sandbox without calling it. They
 * come in the order of the manifests.
 */
export async function buildFunctions(
  folder: string,
  manifests: readonly FunctionManifest[],
): Promise<readonly BuildOutcome[]> {
  if (manifests.length === 0) return [];
  const code = openCode(folder, systemClock);
  const trial = new Trial(systemClock);
  const builds = manifests.map((manifest) => code.bundle(manifest));
  // Each is heard of in its turn.
  for (const build of builds) build.catch(() => undefined);
  const built: BuildOutcome[] = [];
  try {
    // One after the other: loading takes 5 ms, and no more than one handler's memory is held at a time.
    for (const [index, manifest] of manifests.entries()) {
      built.push(await attempt(manifest, builds[index] as Promise<Bundle>, trial));
    }
  } finally {
    code.close();
    await trial.close();
  }
  return built;
}

async function attempt(manifest: FunctionManifest, build: Promise<Bundle>, trial: Trial): Promise<BuildOutcome> {
  try {
    const bundle = await build;
    await trial.load(manifest, bundle);
    return { manifest, bundle, faults: [] };
  } catch (error) {
    if (!(error instanceof WatchfireError) || error.blame !== "user") throw error;
    return { manifest, bundle: undefined, faults: error.faults };
  }
}
