import type { AskedField, Interest } from "../../informer/fanout/subscriber.ts";
import { objectKey } from "../../informer/scan/change.ts";
import type { Filter } from "../filter/filter.ts";
import type { InterestedFunctions } from "./interested-functions.ts";

/**
 * By which changes may pass a holder by; undefined where its filter demands nothing of an object. Those of one dispatcher share a
 * field: another dispatcher's know other objects.
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
