import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { openCode } from "../catalog/function-code.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { LoadCheck } from "../sandbox/host/load-check.ts";

/** The result of building one function: its code, or why it cannot be built or loaded. */
export interface BuildOutcome {
  readonly manifest: FunctionManifest;
  /** `undefined` if there are faults. */
  readonly bundle: Bundle | undefined;
  readonly faults: readonly WatchfireError[];
}

/**
 * Builds every function of a folder, unless it is built already, and loads it in a sandbox without calling it. The results have
 * the order of the manifests.
 */
export async function buildFunctions(
  folder: string,
  manifests: readonly FunctionManifest[],
): Promise<readonly BuildOutcome[]> {
  if (manifests.length === 0) return [];
  const code = openCode(folder, systemClock);
  return tryLoading(manifests, (manifest) => code.bundle(manifest)).finally(() => code.close());
}

/** Loads the code of every function in a sandbox without calling it. The results have the order of the manifests. */
export async function tryLoading(
  manifests: readonly FunctionManifest[],
  codeOf: (manifest: FunctionManifest) => Promise<Bundle>,
): Promise<readonly BuildOutcome[]> {
  const check = new LoadCheck(systemClock);
  const builds = manifests.map(codeOf);
  // Each failure is reported in its turn.
  for (const build of builds) build.catch(() => undefined);
  const built: BuildOutcome[] = [];
  try {
    // Sequentially: loading takes 5 ms, and only one handler is in memory at a time.
    for (const [index, manifest] of manifests.entries()) {
      built.push(await attempt(manifest, builds[index] as Promise<Bundle>, check));
    }
  } finally {
    await check.close();
  }
  return built;
}

async function attempt(manifest: FunctionManifest, build: Promise<Bundle>, check: LoadCheck): Promise<BuildOutcome> {
  try {
    const bundle = await build;
    await check.load(manifest, bundle);
    return { manifest, bundle, faults: [] };
  } catch (error) {
    if (!(error instanceof WatchfireError) || error.blame !== "user") throw error;
    return { manifest, bundle: undefined, faults: error.faults };
  }
}
