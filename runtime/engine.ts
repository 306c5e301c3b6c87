import { boundGarbage } from "./garbage.ts";
import { TierUp } from "./tier-up.ts";

/**
 * Sets V8 up for a process that lives long. It is called before the modules of the runtime are loaded. V8 takes kept code only
 * where its flags are those under which it was compiled.
 */
export function tuneEngine(): TierUp {
  boundGarbage();
  return new TierUp();
}
