import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isMap, isScalar, type Pair, parseDocument, type Scalar, type YAMLMap } from "yaml";
import { z } from "zod";
import { type Form, formOf } from "./forms.ts";

export const chart = join(import.meta.dirname, "../chart");

/** One value of values.yaml, with the information in its comment. */
export interface Value {
  readonly name: string;
  /** The comment's prose, on one line; empty if absent. */
  readonly description: string;
  /** Additions to the value's JSON Schema from a line `@schema {…}` of the comment, with the named form resolved. */
  readonly schema: Form;
  readonly default: unknown;
  /** Values of a group; absent if the value is given as a whole. */
  readonly children?: readonly Value[];
}

const marker = "@schema";

/** `{"form": NAME}` stands for the form of that name, also for a list's items. */
const said = z.looseObject({ form: z.string().optional(), items: z.record(z.string(), z.unknown()).optional() });

/** Returns the values in the file's order. Throws if a `@schema` line is not a JSON object, or names an unknown form. */
export function readValues(text = readFileSync(join(chart, "values.yaml"), "utf8")): Value[] {
  const document = parseDocument(text);
  if (document.errors[0]) throw document.errors[0];
  if (!isMap(document.contents)) throw new Error("values.yaml is no map");
  return valuesOf(document.contents);
}

function valuesOf(map: YAMLMap): Value[] {
  return map.items.map((item, index) => {
    const { key, value } = item as Pair<Scalar<string>>;
    // The parser attaches the comment of a map's first key to the map.
    const comment = key.commentBefore ?? (index === 0 ? map.commentBefore : undefined) ?? "";
    // An empty line separates the comment from an earlier one about something else, such as the file.
    const lines = (comment.split(/\n\s*\n/).at(-1) ?? "").split("\n").map((line) => line.trim());
    const annotation = lines.find((line) => line.startsWith(marker))?.slice(marker.length);
    const schema = annotation === undefined ? {} : written(JSON.parse(annotation));
    const isGroup = isMap(value) && value.items.length > 0 && schema.additionalProperties === undefined;
    return {
      name: key.value,
      description: lines
        .filter((line) => !line.startsWith(marker))
        .join(" ")
        .trim(),
      schema,
      default: isScalar(value) || !value ? (value as Scalar | null)?.value : (value as YAMLMap).toJSON(),
      ...(isGroup && { children: valuesOf(value) }),
    };
  });
}

function written(annotation: unknown): Form {
  const { form, items, ...rest } = said.parse(annotation);
  return { ...(form !== undefined && formOf(form)), ...rest, ...(items && { items: written(items) }) };
}
