// Generates sdk/kubernetes/: an interface for each stable (v1, v2) type of client-node, with Kubernetes' own comments, and the
// map from apiVersion and kind to them. Run it after an update of client-node: node test/sdk/kubernetes-types.ts
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as client from "@kubernetes/client-node";
import { builtInResources } from "../../runtime/cluster/kinds/registry/built-in.ts";

type Model = { getAttributeTypeMap(): { name: string; baseName: string }[] };

/** The classes of client-node that describe data. */
export const models = new Map(
  Object.entries(client).filter(
    (entry): entry is [string, never] => typeof entry[1] === "function" && "getAttributeTypeMap" in entry[1],
  ) as [string, Model][],
);

export const folder = fileURLToPath(new URL("../../sdk/kubernetes/", import.meta.url));

const declarations = join(dirname(createRequire(import.meta.url).resolve("@kubernetes/client-node")), "gen/models");
const made = "made by test/sdk/kubernetes-types.ts; change that";
const header = `// biome-ignore-all format: ${made}\n// biome-ignore-all assist/source/organizeImports: ${made}`;

/** The served version and kind of a type: `apps/v1` and `Deployment`. */
interface Served {
  readonly apiVersion: string;
  readonly kind: string;
}

/** The text of each file of sdk/kubernetes/ for the installed client-node. */
export function render(): Record<"types.ts" | "served.ts", string> {
  const served = servedModels();
  const stable = [...models.keys()].filter((name) => /V[12][A-Z]/.test(name) && !name.endsWith("List")).sort();
  const kinds = stable.filter((name) => served.has(name));
  return {
    "types.ts": [
      header,
      "/** The stable types of Kubernetes, as JSON carries them. Types only: importing them adds nothing to a bundle. */",
      "",
      stable.map((name) => declared(name, served)).join("\n"),
    ].join("\n"),
    "served.ts": [
      header,
      `import type {\n${kinds.map((name) => `  ${name},`).join("\n")}\n} from "./types.ts";`,
      "",
      "/** The built-in kinds by apiVersion and kind. */",
      "export interface BuiltInKinds {",
      ...kinds.map((name) => `  "${served.get(name)?.apiVersion}/${served.get(name)?.kind}": ${name};`),
      "}",
      "",
    ].join("\n"),
  };
}

/** The models that are served at their own path, with their served names. */
function servedModels(): Map<string, Served> {
  const found = new Map<string, Served>();
  for (const { group, version, kind } of builtInResources) {
    const prefix = group === "" ? "Core" : capital(group.split(".")[0] ?? "");
    const names = [`${capital(version)}${kind}`, `${prefix}${capital(version)}${kind}`];
    const name = names.find((each) => models.has(each));
    if (name) found.set(name, { apiVersion: group === "" ? version : `${group}/${version}`, kind });
  }
  return found;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** One class of client-node as an interface: fields by their names in JSON, timestamps as text. */
function declared(name: string, served: ReadonlyMap<string, Served>): string {
  const text = readFileSync(join(declarations, `${name}.d.ts`), "utf8");
  const about = /\/\*\*\n\*([\s\S]*?)\*\/\nexport declare class/.exec(text)?.[1] ?? "";
  const body = text.slice(text.indexOf("export declare class"), text.indexOf("static readonly discriminator"));
  const names = new Map(
    models
      .get(name)
      ?.getAttributeTypeMap()
      .map((each) => [each.name, each.baseName]),
  );
  const as = served.get(name);
  const fields = [...body.matchAll(/(?:\/\*\*\n\s*\*([\s\S]*?)\*\/\s*)?'(\w+)'(\??): ([^;{]+|\{[^}]*\});/g)].map(
    ([, words = "", field = "", optional, type = ""]) => {
      const key = names.get(field) ?? field;
      const shown = /^\w+$/.test(key) ? key : JSON.stringify(key);
      if (as && (field === "apiVersion" || field === "kind")) return `  ${field}: ${JSON.stringify(as[field])};`;
      return `${comment(words, "  ")}  ${shown}${optional}: ${jsonType(type, served)};`;
    },
  );
  return `${comment(about, "")}export interface ${name} {\n${fields.join("\n")}\n}\n`;
}

function comment(words: string, indent: string): string {
  const text = words
    .replace(/\s+/g, " ")
    .replace(/\\(['"])/g, "$1")
    .replaceAll("*/", "*\\/")
    .trim();
  return text === "" ? "" : `${indent}/** ${text} */\n`;
}

/** A type in its JSON form. A kind within another object may omit its apiVersion and kind. */
function jsonType(type: string, served: ReadonlyMap<string, Served>): string {
  return type
    .replace(/\s+/g, " ")
    .replace(/;? \}/, " }")
    .replace(/\b(Date|V1MicroTime)\b/g, "string")
    .replace(/\bIntOrString\b/g, "number | string")
    .replace(/\bany\b|\bobject\b/g, "unknown")
    .replace(/\bV\d\w+|\b[A-Z]\w+V\d\w+/g, (name) => (served.has(name) ? `Omit<${name}, "apiVersion" | "kind">` : name))
    .replace(/^Array<(.*)>$/, (_, item: string) => (item.includes(" ") ? `(${item})[]` : `${item}[]`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(render())) writeFileSync(folder + name, text);
}
