import { laws } from "./law-names.ts";
import { manifestsOf, type Plan } from "./plan.ts";
import { type Fate, wordsOf } from "./world.ts";

/** Describes a world in words: its manifests and its events. */
export function storyOf(plan: Plan, { broken, story }: Fate): string {
  const manifests = manifestsOf(plan).map(({ spec }) => spec);
  const [first] = manifests;
  const lines = [`manifest: ${JSON.stringify(first)}`];
  for (const [at, spec] of manifests.entries()) {
    const before = manifests[at - 1];
    if (before) lines.push(...differences(before, spec, "spec").map((each) => `phase ${at}: ${each}`));
  }
  const [breach] = broken;
  return [breach ? wordsOf(breach) : "no law is broken", ...lines, ...story].map((line) => `  ${line}`).join("\n");
}

/** Each field that differs, with its values before and after. */
function differences(before: unknown, after: unknown, path: string): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (!isObject(before) || !isObject(after)) return [`${path}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differences(before[name], after[name], `${path}.${name}`));
}

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === "object";

/** A table of the laws that were broken, with the number of worlds and the first seeds of each. */
export function tableOf(seeds: ReadonlyMap<keyof typeof laws, readonly number[]>, worlds: number): string {
  const rows = [...seeds].sort(([, a], [, b]) => b.length - a.length);
  const lines = rows.map(([law, all]) => `| ${laws[law]} | ${all.length} | ${all.slice(0, 8).join(" ")} |`);
  return [`| law | of ${worlds} worlds | first seeds |`, "| --- | --- | --- |", ...lines].join("\n");
}
