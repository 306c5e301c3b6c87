import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type { FunctionManifest } from "../manifest/function.ts";
import type { ManifestValues } from "../manifest/values.ts";

/**
 * Returns the author's text of a checked manifest: the file, or that function's document in a file with several.
 * @param values with which its placeholders were filled; `undefined`: they were not
 */
export function manifestText(
  { name, file }: Pick<FunctionManifest, "name" | "file">,
  values?: Pick<ManifestValues, "fill">,
): string {
  const read = readFileSync(file, "utf8");
  const text = values?.fill(read, file).text ?? read;
  const documents = [...parseAllDocuments(text)].filter((document) => document.contents !== null);
  if (documents.length <= 1) return text;
  const mine = documents.find((document) => document.getIn(["metadata", "name"]) === name);
  if (!mine) throw new Error(`${file} has changed while it was read: ${name} is gone`);
  return text.slice(mine.range[0], mine.range[1]);
}
