import type { Kube, KubeObject, ListQuery } from "@watchfire/sdk";

/** All objects that a query selects, page after page. */
export async function every<T extends KubeObject>(kube: Kube, query: ListQuery): Promise<T[]> {
  const items: T[] = [];
  let next: string | undefined;
  do {
    const page = await kube.list<T>({ ...query, continue: next });
    items.push(...page.items);
    next = page.metadata.continue;
  } while (next);
  return items;
}
