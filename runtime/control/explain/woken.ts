import type { WakesNext } from "../../engine/filter/key-rule.ts";
import type { HeldBack } from "../../engine/filter/reason.ts";

/** Keys that are named. */
const mostNamed = 5;

/** Whether no key runs for the event. */
export const isNobody = (wakes: WakesNext): wakes is WakesNext & { readonly now: { readonly heldBack: HeldBack } } =>
  "heldBack" in wakes.now && wakes.left.length === 0;

/** The keys that run for the event, in words. */
export function wokenBy({ now, left }: WakesNext): string {
  const named = "keys" in now ? [list(now.keys)] : [];
  return [...named, ...(left.length > 0 ? [`${list(left)}, for which it counts no more`] : [])].join(", and ");
}

function list(keys: readonly string[]): string {
  const named = keys.slice(0, mostNamed).map((key) => key.replace(/^\//, ""));
  const more = keys.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
}
