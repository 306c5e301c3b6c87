import type { AskedField, Interest } from "../../informer/fanout/subscriber.ts";
import { objectKey } from "../../informer/scan/change.ts";
import type { Filter } from "../filter/filter.ts";
import type { InterestedFunctions } from "./interested-functions.ts";

/**
 * Returns the rule by which the informer may skip changes for a holder; `undefined` if its filter requires nothing of an object.
 * Functions of one dispatcher share a field, and those of another dispatcher do not, since they know other objects.
 */
export function interestOf<T extends object>(
  holder: T,
  { demanded }: Pick<Filter, "demanded">,
  holders: InterestedFunctions<T>,
): Interest | undefined {
  if (!demanded) return undefined;
  const { field, value, read } = demanded;
  const make = (): AskedField => ({ read, knowing: ({ meta }) => holders.of(objectKey(meta)) });
  return { field: holders.field(field, make), value, token: holder };
}
