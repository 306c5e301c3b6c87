import { readFileSync } from "node:fs";

/** One field of a message, with its place in the JSON form. */
export interface MessageField {
  json: string;
  /** The name of a scalar, or of a message such as `core.v1.Pod`. */
  type: string;
  repeated: boolean;
  /** A map from strings to `type`. */
  map: boolean;
  /** The message's fields belong to the outer object. */
  inline: boolean;
  /** Go omits this field from JSON when it is zero, but writes it to protobuf. */
  dropZero: boolean;
}

let table: Record<string, string> | undefined;
const parsed = new Map<string, Map<number, MessageField>>();

/** The fields of a message by number; undefined for a message that is not in the table. */
export function messageFields(name: string): Map<number, MessageField> | undefined {
  const known = parsed.get(name);
  if (known) return known;
  table ??= JSON.parse(readFileSync(new URL("messages.json", import.meta.url), "utf8")) as Record<string, string>;
  const text = Object.hasOwn(table, name) ? table[name] : undefined;
  if (text === undefined) return undefined;
  const fields = new Map<number, MessageField>();
  for (const one of text.split(";")) {
    const [number = "", json = "", type = "", flags = ""] = one.split(" ");
    const map = type.startsWith("map<");
    fields.set(Number(number), {
      json,
      type: map ? type.slice(4, -1) : type,
      repeated: flags.includes("r"),
      map,
      inline: flags.includes("i"),
      dropZero: flags.includes("z"),
    });
  }
  parsed.set(name, fields);
  return fields;
}

/** The name of a kind's message, such as `core.v1.Pod`. */
export function messageOf(group: string, version: string, kind: string): string {
  if (kind.endsWith("Options") && group !== "") return `meta.v1.${kind}`;
  const own = `${group === "" ? "core" : (group.split(".")[0] ?? "")}.${version}.${kind}`;
  return kind === "DeleteOptions" ? "meta.v1.DeleteOptions" : own;
}
