import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";

const functions = join(import.meta.dirname, "functions");

/** One version of the reconciler's manifest: its differences from the file. */
export interface Shape {
  /** How much of an owner its trigger requests. Default: all of it. */
  readonly object?: "Metadata";
  /** The keys that a change of a child wakes. Default: its owner. */
  readonly key?: { readonly expression: string };
  /** Set if the edit replaces the handler by one that receives each event. Default: Reconcile. */
  readonly mode?: "All";
}

/** A child's name begins with its owner's name. */
const key = { expression: "object.metadata.name.substring(0, object.metadata.name.lastIndexOf('-'))" };

/** One edit for each kill. The last one returns to the file. */
export const edits: readonly [Shape, ...Shape[]] = [
  { key },
  { key, object: "Metadata" },
  {},
  { mode: "All" },
  { object: "Metadata" },
  { key },
  { mode: "All", object: "Metadata" },
  {},
];

/** Writes the reconciler into a folder of functions, with its manifest after an edit. */
export async function writeReconciler(into: string, { object, key: rule, mode }: Shape = {}): Promise<void> {
  await cp(functions, into, { recursive: true });
  const file = join(into, "owners/function.yaml");
  const { spec, ...rest } = parse(await readFile(file, "utf8"));
  const [owners, { key: byOwner, ...children }] = spec.triggers;
  const edited = {
    ...spec,
    ...(mode && { handler: "./telling.ts" }),
    triggers: [
      { ...owners, watch: { ...owners.watch, ...(object && { object }) } },
      { ...children, ...(!mode && { key: rule ?? byOwner }) },
    ],
    delivery: { ...spec.delivery, ...(mode && { mode }) },
  };
  await writeFile(file, stringify({ ...rest, spec: edited }));
}
