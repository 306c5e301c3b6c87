import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compile } from "json-schema-to-typescript";
import { kindSchema } from "./compiled-schema.ts";
import { type Definition, readDefinitions } from "./definition.ts";

/** Beginning of each file of types. */
const madeBy = "// Made by `watchfire types`";

/**
 * Rewrites the files of types in `folder` that `watchfire types` made from definitions of these files, and that are out of date. Creates
 * no file. Returns whether it wrote one.
 * @throws WatchfireError WF_TYPES_DEFINITION, and what the file system throws
 */
export async function refreshDeclarations(folder: string, files: readonly string[]): Promise<boolean> {
  let wrote = false;
  for (const definition of files.flatMap(readDefinitions)) {
    const file = join(folder, `${definition.metadata.name}.ts`);
    if (!existsSync(file)) continue;
    const before = readFileSync(file, "utf8");
    const text = await declaration(definition);
    if (text === before || !before.startsWith(madeBy)) continue;
    writeFileSync(file, text);
    wrote = true;
  }
  return wrote;
}

/** Returns the name of a kind's type, in the style of the SDK's built-in types: `V1Shop`. A `-` becomes `_`. */
const typeName = (version: string, kind: string): string =>
  `${version.charAt(0).toUpperCase()}${version.slice(1)}${kind}`.replaceAll("-", "_");

/**
 * Returns the TypeScript file of a definition: an interface for each served version, with its descriptions as comments. The file
 * adds them to the SDK's map of kinds, which types `ctx.kube.get({ apiVersion, kind })`.
 */
export async function declaration({ metadata, spec }: Definition): Promise<string> {
  const { group, names, versions } = spec;
  const { kind } = names;
  const served = versions.filter((version) => version.served);
  const interfaces = await Promise.all(
    served.map(async ({ name, schema }) => {
      const text = await compile(kindSchema(schema.openAPIV3Schema, `${group}/${name}`, kind), "Kind", {
        bannerComment: "",
        // The compiler's formatter is not in the package.
        format: false,
        ignoreMinAndMaxItems: true,
      });
      // The compiler would change the case of the name.
      return laidOut(text).replace("export interface Kind ", `export interface ${typeName(name, kind)} `);
    }),
  );
  return [
    `${madeBy} from the CustomResourceDefinition ${metadata.name}: change that, and make it again.`,
    'import type { ObjectMeta } from "@watchfire/sdk";',
    "",
    ...interfaces,
    'declare module "@watchfire/sdk" {',
    "  interface Kinds {",
    ...served.map(({ name }) => `    "${group}/${name}/${kind}": ${typeName(name, kind)};`),
    "  }",
    "}",
    "",
  ].join("\n");
}

/** Indents the compiler's unformatted output: one line per field, and comments on separate lines. */
function laidOut(text: string): string {
  let depth = 0;
  return text
    .trim()
    .split("\n")
    .map((raw) => {
      const line = raw.trim();
      const isComment = /^\/?\*/.test(line);
      if (isComment) return `${"  ".repeat(depth)}${line.startsWith("*") ? " " : ""}${line}`;
      if (line.startsWith("}")) depth--;
      const indented = "  ".repeat(depth) + line;
      if (line.endsWith("{")) depth++;
      return line === "" || line.endsWith("{") || depth === 0 ? indented : `${indented};`;
    })
    .concat("")
    .join("\n");
}
