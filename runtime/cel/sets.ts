import { equals } from "./equality.ts";
import type { Library } from "./library.ts";
import type { Meter } from "./meter.ts";
import type { Value } from "./value.ts";

type CelList = readonly Value[];

const has = (meter: Meter, list: CelList, item: Value): boolean => list.some((each) => equals(meter, each, item));

const contains = (meter: Meter, list: CelList, part: CelList): boolean => part.every((item) => has(meter, list, item));

/** cel-go's extension for lists as sets. */
export const sets: Library = {
  namespaces: ["sets"],
  functions: [
    [
      "sets.contains(list<dyn>, list<dyn>): bool",
      (meter, _: unknown, list: CelList, part: CelList) => contains(meter, list, part),
    ],
    [
      "sets.equivalent(list<dyn>, list<dyn>): bool",
      (meter, _: unknown, left: CelList, right: CelList) =>
        contains(meter, left, right) && contains(meter, right, left),
    ],
    [
      "sets.intersects(list<dyn>, list<dyn>): bool",
      (meter, _: unknown, left: CelList, right: CelList) => left.some((item) => has(meter, right, item)),
    ],
  ],
};
