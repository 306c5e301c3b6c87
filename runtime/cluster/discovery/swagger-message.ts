import { encodeJson } from "../exact-json.ts";
import {
  alone,
  double,
  type Encode,
  entries,
  entry,
  type Fields,
  message,
  text,
  whole,
  within,
} from "../protobuf/writer.ts";
import type { Json, JsonObject } from "../schema/index.ts";

/**
 * Matches the media type that kubectl requests of `/openapi/v2`, in its old and its new spelling. The answer uses the new one.
 */
export const asksForMessage = /application\/com\.github\.proto-openapi\.spec\.v2[@.]v1\.0\+protobuf/;
export const messageMediaType = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/**
 * Encodes an OpenAPI v2 document as the message `openapi.v2.Document`, the only form that kubectl reads. The field numbers are
 * those of gnostic's `OpenAPIv2.proto`.
 */
export const swaggerMessage = (document: JsonObject): Buffer => alone(wholeDocument, document);

/** Encodes any value in the message's YAML form; JSON is valid YAML. */
const any: Encode = (value) => within(2, text)(encodeJson(value));

/** Encodes the fields whose names begin with `x-` as named values in field `number`. */
const extended = (fields: Fields, number: number): Encode =>
  message(fields, (name, value) => (name.startsWith("x-") ? entry(number, [name, value], any) : undefined));

const schema: Encode = (value) => wholeSchema(value);

const wholeSchema = extended(
  {
    $ref: [1, text],
    format: [2, text],
    title: [3, text],
    description: [4, text],
    multipleOf: [6, double],
    maximum: [7, double],
    exclusiveMaximum: [8, whole],
    minimum: [9, double],
    exclusiveMinimum: [10, whole],
    maxLength: [11, whole],
    minLength: [12, whole],
    pattern: [13, text],
    maxItems: [14, whole],
    minItems: [15, whole],
    uniqueItems: [16, whole],
    maxProperties: [17, whole],
    minProperties: [18, whole],
    required: [19, text, "each"],
    enum: [20, any, "each"],
    additionalProperties: [21, (value) => (typeof value === "boolean" ? within(2, whole) : within(1, schema))(value)],
    type: [22, within(1, text)],
    items: [23, within(1, schema)],
    properties: [25, entries(1, schema)],
  },
  31,
);

const bodyParameter = message({ name: [2, text], in: [3, text], required: [4, whole], schema: [5, schema] });
const pathParameter = message({
  required: [1, whole],
  in: [2, text],
  name: [4, text],
  type: [5, text],
  uniqueItems: [18, whole],
});
const queryParameter = message({ in: [2, text], name: [4, text], type: [6, text], uniqueItems: [20, whole] });

const parameter: Encode = (value) => {
  const forms: Readonly<Record<string, Encode>> = {
    body: within(1, bodyParameter),
    path: within(2, within(4, pathParameter)),
    query: within(2, within(3, queryParameter)),
  };
  return within(1, forms[String((value as { in?: Json }).in)] ?? message({}))(value);
};

const response = message({ description: [1, text], schema: [2, within(1, schema)] });

const operation = extended(
  {
    operationId: [5, text],
    produces: [6, text, "each"],
    consumes: [7, text, "each"],
    parameters: [8, parameter, "each"],
    responses: [9, entries(1, within(1, response))],
    schemes: [10, text, "each"],
  },
  13,
);

const pathItem = message({
  get: [2, operation],
  put: [3, operation],
  post: [4, operation],
  delete: [5, operation],
  patch: [8, operation],
  parameters: [9, parameter, "each"],
});

const wholeDocument = message({
  swagger: [1, text],
  info: [2, message({ title: [1, text], version: [2, text] })],
  paths: [8, entries(2, pathItem)],
  definitions: [9, entries(1, schema)],
});
