import type { IncomingMessage } from "node:http";
import { gunzipSync } from "node:zlib";
import { type Fields, groupVersion, isFields, type KubeObject } from "../api/object.ts";
import { badRequest, fault, invalid, tooLarge, unsupportedMediaType } from "../api/status.ts";
import { encodeJson, isNumber, parseJson, parseWritten, UnreadableNumber } from "../exact-json.ts";
import { type ResourceType, servedVersion } from "../kinds/resource-type.ts";
import { typeMismatch } from "../kinds/type-mismatch.ts";
import { decodeProtobuf, protobufMediaType } from "../protobuf/decode.ts";
import { parseYaml } from "./yaml.ts";

/** Maximum size of a request's body in bytes, as in the real server (`DefaultMaxRequestSizeBytes`). */
const bodyLimit = 3 * 1024 * 1024;

const accepted = ["application/json", "application/yaml", protobufMediaType];

/** A body that is not parsed yet. */
export interface Body {
  readonly bytes: Buffer;
  /** In lower case, without parameters; "" if the request has no Content-Type. */
  readonly mediaType: string;
}

/** Reads a request's body. Throws a 413. */
export async function readBody(request: IncomingMessage): Promise<Body> {
  const pieces: Buffer[] = [];
  let size = 0;
  // Keeps a request with a too large body open, so that the answer can still be sent.
  const stream: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false });
  for await (const piece of stream) {
    size += piece.length;
    if (size > bodyLimit) throw tooLarge(bodyLimit);
    pieces.push(piece);
  }
  let bytes = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
  if (request.headers["content-encoding"] === "gzip") bytes = unpacked(bytes);
  const mediaType = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  return { bytes, mediaType };
}

function unpacked(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: bodyLimit });
  } catch {
    throw badRequest("the body is not the gzip stream that its Content-Encoding says, or too large");
  }
}

/**
 * Parses a body as JSON or YAML, by its media type. Throws 400 or 415. `unreadable` makes the message of the 400 for a number
 * such as 1e400.
 */
export function parseBody(body: Body, unreadable = ({ message }: UnreadableNumber) => message): unknown {
  if (body.mediaType !== "" && !accepted.includes(body.mediaType)) throw unsupportedMediaType(accepted);
  try {
    if (body.mediaType === protobufMediaType) return decodeProtobuf(body.bytes);
    const text = body.bytes.toString("utf8");
    return body.mediaType === "application/yaml" ? parseYaml(text) : parseJson(text);
  } catch (error) {
    if (error instanceof UnreadableNumber) throw badRequest(unreadable(error));
    throw badRequest(`couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : error}`);
  }
}

/** Reads an object of a resource from a body. Its apiVersion and kind are optional. Throws 400 or 415. */
export function objectOf(body: Body, type: ResourceType): KubeObject {
  if (!type.custom && (body.mediaType === "" || body.mediaType === "application/json")) admitNumbers(body, type);
  const value = parseBody(body, ({ message }) => handled(type, message));
  return asObjectOf(value, type);
}

/** Checks that integer fields of a built-in kind are written as integers. Throws a 400. */
function admitNumbers(body: Body, type: ResourceType): void {
  const schema = type.schema();
  const mismatch = schema && typeMismatch(schema, parseWritten(body.bytes.toString("utf8")), type.kind);
  if (mismatch) throw badRequest(handled(type, mismatch));
}

/** The API server's message for an object that cannot be read. */
export function handled(type: ResourceType, why: string): string {
  return `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: ${why}`;
}

/** Checks that a value is an object of a resource. Throws a 400. */
export function asObjectOf(value: unknown, type: ResourceType): KubeObject {
  if (!isFields(value)) throw badRequest(`couldn't get version/kind; json parse error: expected an object`);
  const kind = typeof value.kind === "string" && value.kind !== "" ? value.kind : type.kind;
  const apiVersion =
    typeof value.apiVersion === "string" && value.apiVersion !== "" ? value.apiVersion : servedVersion(type);
  if (type.custom) admitCustomType(value, type);
  if (kind !== type.kind || apiVersion !== servedVersion(type)) throw badRequest(wrongKind(kind, apiVersion, type));
  const metadata = value.metadata ?? {};
  if (!isFields(metadata))
    throw badRequest(
      `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: json: cannot unmarshal ${goType(metadata)} into Go struct field ${type.kind}.metadata of type v1.ObjectMeta`,
    );
  return { ...value, apiVersion, kind, metadata };
}

/** Checks that a custom resource states its apiVersion and kind. Throws 400 or 422. */
function admitCustomType(value: Fields, type: ResourceType): void {
  for (const name of ["Kind", "apiVersion"])
    if (!value[name === "Kind" ? "kind" : name]) {
      const text = encodeJson(value);
      throw badRequest(
        `the object provided is unrecognized (must be of type ${type.kind}): Object '${name}' is missing in '${text}' (${text})`,
      );
    }
  if (value.kind === type.kind || value.apiVersion !== servedVersion(type)) return;
  const name = isFields(value.metadata) ? String(value.metadata.name ?? "") : "";
  throw invalid({ group: type.group, kind: String(value.kind) }, name, [
    fault.invalid("kind", value.kind, `must be ${type.kind}`),
  ]);
}

function wrongKind(kind: string, apiVersion: string, type: ResourceType): string {
  const { version } = groupVersion(apiVersion);
  if (type.custom)
    return `the API version in the data (${apiVersion}) does not match the expected API version (${servedVersion(type)})`;
  const internal = `${type.group.split(".")[0] || "core"}.${type.kind}`;
  return `${kind} in version "${version}" cannot be handled as a ${type.kind}: converting (${version}.${kind}) to (${internal}): unknown conversion`;
}

/** The name of a JSON value's type in the messages of Go's decoder. */
function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : isNumber(value) ? "number" : typeof value;
}
