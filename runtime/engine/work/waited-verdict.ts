// Door: verdicts on events that waited, while their object, or the manifest, may have changed.
import type { Verdict } from "../filter/filter.ts";
import { goneMeanwhile, notAsked, refusedBefore, unchanged, unselected } from "../filter/reason.ts";
import type { LaneEvent } from "./event.ts";

export const told: Verdict = { deliver: true, heldBack: undefined, hash: "", matched: true };
/** The object is gone: its deletion is delivered, and earlier events are not. */
export const isGone: Verdict = { deliver: false, heldBack: goneMeanwhile, hash: "", matched: true };
export const isUnselected: Verdict = { deliver: false, heldBack: unselected, hash: "", matched: true };

/** True if the event is delivered with the object's current state. A dead letter that was put back keeps its own body. */
export const isOfToday = ({ type, replayed, flags }: LaneEvent): boolean =>
  type !== "Deleted" && (!replayed || flags.reason === "edited");

/**
 * True if the trigger no longer selects the object. A deletion is then still delivered, unless everything before it was left out
 * here.
 */
export const isLetGo = ({ type, view, key, meta, isUnselected }: LaneEvent): boolean =>
  type === "Deleted" ? view.isUntold(key, meta.uid) : isUnselected;

/**
 * True if a verdict keeps an event from its handler. A dead letter that was put back is delivered whatever the manifest says by
 * now. An event that an edit of the manifest made obeys the next manifest's `events` and conditions; its fields need not differ.
 */
export function isHeldBack({ replayed, isAsked, flags }: LaneEvent, { deliver, heldBack }: Verdict): boolean {
  if (deliver || !replayed || isAsked) return !deliver;
  return flags.reason === "edited" && heldBack !== unchanged;
}

/** Returns the verdict on a replay whose object was read from the API server. */
export function asked(event: LaneEvent, body: Buffer | undefined): Verdict {
  if (!body || !isOfToday(event)) return told;
  if (!event.view.trigger.events.includes(event.type)) return { ...isGone, heldBack: notAsked };
  return event.view.matches(event.key, body) ? told : { ...isGone, heldBack: refusedBefore };
}
