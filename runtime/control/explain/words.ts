import type { WakesNext } from "../../engine/filter/key-rule.ts";
import type { HeldBack } from "../../engine/filter/reason.ts";
import type { EventType, Trigger } from "../../manifest/function.ts";

/** The changed fields, formatted as in a manifest. */
export const fieldsOf = ({ changedFields }: Trigger): string =>
  changedFields.map((path) => `.${path.join(".")}`).join(", ");

/** Describes why an event was filtered. @param show prepares a condition's message for display */
export function because(why: HeldBack, type: EventType, trigger: Trigger, show: (text: string) => string): string {
  switch (why.type) {
    case "events":
      return `${type} is not one of its events: ${trigger.events.join(", ")}`;
    case "changedFields":
      return `its changedFields are unchanged: ${fieldsOf(trigger)}`;
    case "condition":
      return `the condition ${why.condition} is false`;
    case "conditionError":
      return `the condition ${why.condition} has no value: ${show(why.message)}`;
    case "lastAnswer":
      return "its conditions did not hold when the object was last seen";
    case "initialEvents":
      return "the object was there when the function was deployed, and initialEvents is Skip";
    case "gone":
      return "it waited while the manifest was edited, and its object is gone";
    case "unselected":
      return "it waited while the manifest was edited, and its trigger no longer selects its object";
    case "backlog":
      return `more changes of the object waited than its share of the queue: a newer event replaces ${why.collapsed} of them`;
    case "key":
      return trigger.key?.type === "owner"
        ? `it has no owner of kind ${trigger.key.kind}, by which its trigger's key would wake one`
        : "its trigger's key gives no name for it";
    case "keyError":
      return `its trigger's key has no value that is a name: ${show(why.message)}`;
  }
}

/** Maximum number of keys that are named. */
const mostNamed = 5;

/** Whether no key runs for the event. */
export const isNobody = (wakes: WakesNext): wakes is WakesNext & { readonly now: { readonly heldBack: HeldBack } } =>
  "heldBack" in wakes.now && wakes.left.length === 0;

/** Describes the keys that run for the event. */
export function wokenBy({ now, left }: WakesNext): string {
  const named = "keys" in now ? [list(now.keys)] : [];
  return [...named, ...(left.length > 0 ? [`${list(left)}, for which it no longer counts`] : [])].join(", and ");
}

function list(keys: readonly string[]): string {
  if (keys.length === 0) return "no key, because no object exists";
  const named = keys.slice(0, mostNamed).map((key) => key.replace(/^\//, ""));
  const more = keys.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
}
