import { bundleFunction } from "../bundle/bundle-function.ts";
import { systemClock } from "../clock.ts";
import { WatchfireError } from "../errors.ts";
import { checkExpression } from "../filter/check-expression.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { loadFunctions } from "../manifest/load.ts";
import { Trial } from "../sandbox/trial.host.ts";
import { command } from "./command.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder } from "./options.ts";

export const validate = command({
  name: "validate",
  summary: "checks every manifest, builds every handler, and loads it in a sandbox without calling it",
  options: { functions: functionsFolder },
  async run({ options }) {
    const folder = readFolder(options.functions);
    const { functions, rejected, faults } = await loadFunctions(folder, { checkExpression });
    // A folder that is not the one that was meant must not pass for a good one.
    if (functions.length + rejected.length + faults.length === 0) {
      throw new WatchfireError("WF_MANIFEST_NONE", { what: "there is no function below it", place: { file: folder } });
    }
    const ofHandlers = await tryHandlers(functions);
    const all = [...faults, ...ofHandlers.flat()];
    for (const fault of all) process.stderr.write(`${fault.message}\n`);
    const good = ofHandlers.filter((own) => own.length === 0).length;
    process.stdout.write(`${good} valid, ${all.length === 1 ? "1 fault" : `${all.length} faults`}\n`);
    return all.length === 0 ? 0 : 1;
  },
});

/** Of each function, why its handler cannot be built or loaded. */
async function tryHandlers(functions: readonly FunctionManifest[]): Promise<(readonly WatchfireError[])[]> {
  if (functions.length === 0) return [];
  const trial = new Trial(systemClock);
  const builds = functions.map(bundleFunction);
  // Each is heard of in its turn.
  for (const build of builds) build.catch(() => undefined);
  const faults: (readonly WatchfireError[])[] = [];
  try {
    // One after the other: loading takes 5 ms, and no more than one handler's memory is held at a time.
    for (const [index, build] of builds.entries()) {
      faults.push(await faultsOf(async () => trial.load(functions[index] as FunctionManifest, await build)));
    }
  } finally {
    await trial.close();
  }
  return faults;
}

async function faultsOf(step: () => Promise<void>): Promise<readonly WatchfireError[]> {
  try {
    await step();
    return [];
  } catch (error) {
    if (!(error instanceof WatchfireError) || error.blame !== "user") throw error;
    return error.faults;
  }
}
