import type { Checkpoint } from "../journal/checkpoint.ts";

/** The functions that something is kept of; that of removed ones counts for nothing. @throws what the store throws */
export async function namesIn(stores: readonly Checkpoint[]): Promise<Set<string>> {
  const names = new Set<string>();
  for (const store of stores) {
    for (const view of await store.views()) names.add(view.function);
    for (const name of (await store.paused()).keys()) names.add(name);
    for (let after: string | undefined; ; ) {
      const page = await store.deadLetters({ after });
      if (page.length === 0) break;
      after = page.at(-1)?.letter;
      for (const letter of page) names.add(letter.function);
    }
  }
  return names;
}

/** Those that were removed, and whose positions are kept for as long as they may come back. @throws what the store throws */
export async function retiredIn(stores: readonly Checkpoint[]): Promise<Set<string>> {
  const views = await Promise.all(stores.map((store) => store.retiredViews()));
  return new Set(views.flat().map((view) => view.function));
}
