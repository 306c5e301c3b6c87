import type { Delivery } from "./delivery.ts";

/** The event as the handler gets it, without its objects. */
export function eventFields({ id, trigger, type, attempt, redelivered, resourceVersion, flags }: Delivery): object {
  // A Scheduled has none that means anything.
  const version = type === "Scheduled" ? {} : { resourceVersion };
  return { id, trigger, type, attempt, redelivered, ...version, ...flags };
}
