import type { Environment } from "@marcbachmann/cel-js";

type Ordered = bigint | number | string;

/** Adds Kubernetes' functions on lists: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`. */
export function addLists(environment: Environment): void {
  environment
    .registerFunction("list<dyn>.isSorted(): bool", (list: Ordered[]) =>
      list.every((item, index) => index === 0 || (list[index - 1] ?? item) <= item),
    )
    .registerFunction("list<dyn>.sum(): dyn", (list: Ordered[]) => sum(list))
    .registerFunction("list<dyn>.min(): dyn", (list: Ordered[]) => extreme(list, "min", (a, b) => a < b))
    .registerFunction("list<dyn>.max(): dyn", (list: Ordered[]) => extreme(list, "max", (a, b) => a > b))
    .registerFunction("list<dyn>.indexOf(dyn): int", (list: Ordered[], item: Ordered) => BigInt(list.indexOf(item)))
    .registerFunction("list<dyn>.lastIndexOf(dyn): int", (list: Ordered[], item: Ordered) =>
      BigInt(list.lastIndexOf(item)),
    );
}

function sum(list: readonly Ordered[]): Ordered {
  if (list.every((item) => typeof item === "bigint")) return list.reduce((total, item) => total + item, 0n);
  return list.reduce((total: number, item) => total + Number(item), 0);
}

function extreme(list: readonly Ordered[], name: string, better: (left: Ordered, right: Ordered) => boolean): Ordered {
  const [first, ...rest] = list;
  if (first === undefined) throw new Error(`${name} called on empty list`);
  return rest.reduce((best, item) => (better(item, best) ? item : best), first);
}
