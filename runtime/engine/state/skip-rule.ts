import type { AskedField, SkipRule } from "../../informer/fanout/subscriber.ts";
import { objectKey } from "../../informer/scan/change.ts";
import type { Filter } from "../filter/filter.ts";
import type { Subscribers } from "./subscribers.ts";

/**
 * Returns the rule by which the informer may skip changes for a subscriber; `undefined` if its filter requires nothing of an object.
 * Functions of one dispatcher share a field, and those of another dispatcher do not, since they know other objects.
 */
export function skipRuleOf<T extends object>(
  subscriber: T,
  { demanded }: Pick<Filter, "demanded">,
  subscribers: Subscribers<T>,
): SkipRule | undefined {
  if (!demanded) return undefined;
  const { field, value, read } = demanded;
  const make = (): AskedField => ({ read, knowing: ({ meta }) => subscribers.of(objectKey(meta)) });
  return { field: subscribers.field(field, make), value, token: subscriber };
}
