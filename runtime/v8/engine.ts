import { CompilerPacing, paceTierUp } from "./compiler-pacing.ts";
import { boundGarbage, setGarbageFlags } from "./garbage.ts";

/**
 * Sets the flags of V8 under which modules of the runtime are compiled. V8 takes kept code only where they are those under which
 * it was compiled. So this comes before the first of these modules, in each process that keeps or takes such code.
 */
export function setEngineFlags(): CompilerPacing {
  setGarbageFlags();
  return new CompilerPacing();
}

/**
 * Lets V8 follow what this process does, once its modules are loaded: other flags would have them compiled anew.
 * @returns ends that
 */
export function tuneEngine(): () => void {
  const ends = [boundGarbage(), paceTierUp(setEngineFlags())];
  return () => {
    for (const end of ends) end();
  };
}
