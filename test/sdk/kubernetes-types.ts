// Renders sdk/kubernetes/: one type for each stable (v1, v2) type of client-node; of a list, use ObjectList<T>.
// After client-node was updated: node test/sdk/kubernetes-types.ts
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as client from "@kubernetes/client-node";

type Model = { getAttributeTypeMap(): { name: string; baseName: string }[] };

/** The classes of client-node that describe data. */
export const models = Object.entries(client).filter(
  (entry): entry is [string, never] => typeof entry[1] === "function" && "getAttributeTypeMap" in entry[1],
) as [string, Model][];

export const folder = fileURLToPath(new URL("../../sdk/kubernetes/", import.meta.url));

/** The text of each file of sdk/kubernetes/ for the client-node that is installed. */
export function render(): Record<"kinds.ts" | "parts.ts", string> {
  const isKind = (model: Model) => model.getAttributeTypeMap().some(({ name }) => name === "kind");
  const stable = models.filter(([name]) => /V[12][A-Z]/.test(name) && !name.endsWith("List"));
  const file = (about: string, names: string[]) =>
    [
      "// biome-ignore-all format: made by test/sdk/kubernetes-types.ts; change that",
      `/** ${about}, as JSON carries them. Types only: importing them adds nothing to a bundle. */`,
      'import type * as client from "@kubernetes/client-node";',
      'import type { Json } from "../json.ts";',
      "",
      ...names.sort().map((name) => `export type ${name} = Json<client.${name}>;`),
      "",
    ].join("\n");
  const names = (kinds: boolean) => stable.filter(([, model]) => isKind(model) === kinds).map(([name]) => name);
  return {
    "kinds.ts": file("The stable kinds of Kubernetes", names(true)),
    "parts.ts": file("What the stable kinds of Kubernetes are made of", names(false)),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(render())) writeFileSync(folder + name, text);
}
