import type { IndexEntry } from "../deployed-index.ts";

/** Outcome of a deployment for a function. `restored`: it was deployed already, but its ConfigMap was missing or damaged. */
export type FunctionChange = "created" | "changed" | "unchanged" | "restored" | "removed";

/** Returns the outcome for each function, by name; `written` are the ConfigMaps that had to be written. */
export function functionChanges(
  before: readonly IndexEntry[],
  now: readonly IndexEntry[],
  written: ReadonlySet<string>,
): readonly { readonly name: string; readonly fate: FunctionChange }[] {
  const old = new Map(before.map((entry) => [entry.name, entry.sha256]));
  const names = new Set(now.map(({ name }) => name));
  const fateOf = ({ name, sha256, configMap }: IndexEntry): FunctionChange => {
    if (!old.has(name)) return "created";
    if (old.get(name) !== sha256) return "changed";
    return written.has(configMap) ? "restored" : "unchanged";
  };
  return [
    ...now.map((entry) => ({ name: entry.name, fate: fateOf(entry) })),
    ...before.filter(({ name }) => !names.has(name)).map(({ name }) => ({ name, fate: "removed" as const })),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}
