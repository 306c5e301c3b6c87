import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";

const functions = join(import.meta.dirname, "functions");

/** The reconciler's manifest as it is edited: what differs from the file. */
export interface Shape {
  /** How much of an owner its trigger asks for. Default all of it. */
  readonly object?: "Metadata";
  /** Selects the keys that a child wakes. Default: its owner. */
  readonly key?: { readonly expression: string };
  /** Set if the edit replaces the handler by one that receives each event. Default: Reconcile. */
  readonly mode?: "All";
}

/** The owner's name is the beginning of a child's. */
const key = { expression: "object.metadata.name.substring(0, object.metadata.name.lastIndexOf('-'))" };

/** One for each kill. The last one goes back to the file. */
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

/** Writes the reconciler into a folder of functions, with its manifest as it is after an edit. */
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
