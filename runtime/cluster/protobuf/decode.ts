import { type Fields, groupVersion, isFields } from "../api/object.ts";
import { int64, parseJson } from "../exact-json.ts";
import { type MessageField, messageFields, messageOf } from "./messages.ts";
import { ProtobufReader } from "./reader.ts";

/** The media type in which Go clients send built-in kinds. */
export const protobufMediaType = "application/vnd.kubernetes.protobuf";

const magic = Buffer.from("k8s\0");

/**
 * Decodes an object in Kubernetes' protobuf envelope into its JSON form. Throws an Error with the cause if the bytes are invalid.
 */
export function decodeProtobuf(bytes: Buffer): Fields {
  if (!bytes.subarray(0, magic.length).equals(magic))
    throw new Error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  const envelope = new ProtobufReader(bytes.subarray(magic.length));
  let type = { apiVersion: "", kind: "" };
  let raw: Buffer = Buffer.alloc(0);
  while (!envelope.done) {
    const { field, wire } = envelope.tag();
    if (field === 1) type = typeMeta(envelope.delimited());
    else if (field === 2) raw = envelope.delimited();
    else envelope.skip(wire);
  }
  const { group, version } = groupVersion(type.apiVersion);
  const name = messageOf(group, version, type.kind);
  if (!messageFields(name)) throw new Error(`no kind "${type.kind}" is registered for version "${type.apiVersion}"`);
  return { ...type, ...(message(name, raw) as Fields) };
}

function typeMeta(bytes: Buffer): { apiVersion: string; kind: string } {
  const reader = new ProtobufReader(bytes);
  const meta = { apiVersion: "", kind: "" };
  while (!reader.done) {
    const { field, wire } = reader.tag();
    if (field === 1) meta.apiVersion = reader.delimited().toString("utf8");
    else if (field === 2) meta.kind = reader.delimited().toString("utf8");
    else reader.skip(wire);
  }
  return meta;
}

/** Decodes a message into JSON. Most messages become objects; some have a special JSON form. */
function message(name: string, bytes: Buffer): unknown {
  const fields = messageFields(name);
  const values: Fields = {};
  const reader = new ProtobufReader(bytes);
  while (!reader.done) {
    const { field, wire } = reader.tag();
    const known = fields?.get(field) ?? opaque(name, field);
    if (!known) reader.skip(wire);
    else read(reader, wire, known, values);
  }
  return jsonForm(name, values);
}

/** Fields of the messages with a special JSON form, which are not in the table. */
function opaque(name: string, field: number): MessageField | undefined {
  const plain = { repeated: false, map: false, inline: false, dropZero: false };
  if (name === "resource.Quantity" && field === 1) return { ...plain, json: "string", type: "string" };
  if (name === "runtime.RawExtension" && field === 1) return { ...plain, json: "raw", type: "bytes" };
  if (name !== "intstr.IntOrString") return undefined;
  if (field === 3) return { ...plain, json: "strVal", type: "string" };
  return { ...plain, json: field === 1 ? "type" : "intVal", type: "int64" };
}

function read(reader: ProtobufReader, wire: number, field: MessageField, into: Fields): void {
  if (field.map) {
    const map = isFields(into[field.json]) ? (into[field.json] as Fields) : {};
    const { key, value } = mapEntry(reader.delimited(), field.type);
    map[key] = value;
    into[field.json] = map;
    return;
  }
  const value = scalarOrMessage(reader, wire, field.type);
  if (field.inline) {
    if (isFields(value)) Object.assign(into, value);
  } else if (field.repeated) {
    const list = into[field.json];
    if (Array.isArray(list)) list.push(value);
    else into[field.json] = [value];
  } else if (value !== undefined && !(field.dropZero && isZero(value))) into[field.json] = value;
}

function mapEntry(bytes: Buffer, type: string): { key: string; value: unknown } {
  const reader = new ProtobufReader(bytes);
  let key = "";
  let value: unknown = type === "string" || type === "bytes" ? "" : {};
  while (!reader.done) {
    const { field, wire } = reader.tag();
    if (field === 1) key = reader.delimited().toString("utf8");
    else if (field === 2) value = scalarOrMessage(reader, wire, type);
    else reader.skip(wire);
  }
  return { key, value };
}

function scalarOrMessage(reader: ProtobufReader, wire: number, type: string): unknown {
  switch (type) {
    case "string":
      return reader.delimited().toString("utf8");
    case "bytes":
      return reader.delimited().toString("base64");
    case "bool":
      return reader.varint() !== 0n;
    case "int32":
    case "int64":
      return int64(reader.varint());
    case "double":
      return reader.double();
    default:
      if (wire !== 2) throw new RangeError(`wire type ${wire} holds no ${type}`);
      return message(type, reader.delimited());
  }
}

const isZero = (value: unknown) => value === "" || value === 0 || value === false;

/** Messages whose JSON form is not an object of their fields. */
function jsonForm(name: string, values: Fields): unknown {
  switch (name) {
    case "meta.v1.Time":
      return time(values)?.replace(/\.\d+Z$/, "Z");
    case "meta.v1.MicroTime":
      return time(values);
    case "meta.v1.Duration":
      return `${Number(values.duration ?? 0) / 1e9}s`;
    case "resource.Quantity":
      return values.string ?? "0";
    case "intstr.IntOrString":
      return values.type === 1 ? (values.strVal ?? "") : (values.intVal ?? 0);
    case "runtime.RawExtension":
    case "apiextensions.v1.JSON":
    case "meta.v1.FieldsV1":
      return raw(values.raw ?? values["-"]);
    case "apiextensions.v1.JSONSchemaPropsOrBool":
      return values.schema ?? values.allows ?? false;
    case "apiextensions.v1.JSONSchemaPropsOrArray":
      return values.schema ?? values.jsonSchemas ?? values.jSONSchemas;
    case "apiextensions.v1.JSONSchemaPropsOrStringArray":
      return values.schema ?? values.property;
    default:
      return Object.keys(values).length === 1 && Array.isArray(values.items) && isList(name) ? values.items : values;
  }
}

/** Types that are a list in JSON and a message with `items` in protobuf. */
const isList = (name: string) => name.endsWith(".ExtraValue") || name.endsWith(".Verbs");

/** RFC 3339 with microseconds; undefined for Go's zero time, an empty message. */
function time({ seconds, nanos }: Fields): string | undefined {
  if (seconds === undefined && nanos === undefined) return undefined;
  const micros = String(Math.floor(Number(nanos ?? 0) / 1000)).padStart(6, "0");
  return new Date(Number(seconds ?? 0) * 1000).toISOString().replace(/\.\d+Z$/, `.${micros}Z`);
}

function raw(base64: unknown): unknown {
  if (typeof base64 !== "string" || base64 === "") return undefined;
  return parseJson(Buffer.from(base64, "base64").toString("utf8"));
}
