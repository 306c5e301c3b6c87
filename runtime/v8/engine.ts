import { CompilerPacing, paceTierUp } from "./compiler-pacing.ts";
import { boundGarbage, setGarbageFlags } from "./garbage.ts";

/**
 * Sets the V8 flags under which modules of the runtime are compiled. V8 uses cached code only under the flags it was compiled
 * with, so this must run before the first of these modules is loaded, in each process that writes or reads such a cache.
 */
export function setEngineFlags(): CompilerPacing {
  setGarbageFlags();
  return new CompilerPacing();
}

/**
 * Adapts V8 to the process' load. Called once its modules are loaded, because other flags would invalidate their cached code.
 * @returns a function that stops it
 */
export function tuneEngine(): () => void {
  const ends = [boundGarbage(), paceTierUp(setEngineFlags())];
  return () => {
    for (const end of ends) end();
  };
}
