/**
 * What the embedded API server knows of schemas: pure functions over JSON, no I/O but the lazily read data file of the
 * built-in kinds. Nothing here changes its arguments; results may share parts with them, so treat both as immutable.
 */
import type { FieldError } from "./field-error.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Schema } from "./schema.ts";

export { type FieldError, fieldErrorText, invalidMessage, statusCauses } from "./field-error.ts";
export type { Json, JsonObject } from "./json.ts";
export type { Schema, SchemaKind, ValidationRule } from "./schema.ts";

const pending = (): never => {
  throw new Error("not built yet");
};

/** A kind's schema, references followed; undefined for a kind that the real server's data does not have. `group` is "" for core. */
export function builtInSchema(_group: string, _version: string, _kind: string): Schema | undefined {
  return pending();
}
/** Checks that a CRD version's `schema.openAPIV3Schema` is structural; `path` prefixes the errors' paths. */
export function structuralSchema(
  _openAPIV3Schema: JsonObject,
  _path?: string,
): { schema: Schema; errors?: undefined } | { schema?: undefined; errors: FieldError[] } {
  return pending();
}
/** Drops the fields that the schema does not know; `unknown` holds their dotted paths (`spec.containers[0].x`). */
export function prune(_schema: Schema, _object: JsonObject): { object: JsonObject; unknown: string[] } {
  return pending();
}
/** Fills in the schema's defaults, top down. */
export function applyDefaults(_schema: Schema, _object: JsonObject): JsonObject {
  return pending();
}
/** Everything the schema forbids in the object. `old` is the stored object of an update, for transition rules. */
export function validate(_schema: Schema, _object: JsonObject, _old?: JsonObject): FieldError[] {
  return pending();
}

/** RFC 6902. Throws a PatchError. */
export function jsonPatch(_original: JsonObject, _patch: Json): JsonObject {
  return pending();
}
/** RFC 7396. Throws a PatchError. */
export function mergePatch(_original: JsonObject, _patch: Json): JsonObject {
  return pending();
}
/** Kubernetes' strategic merge. Throws a PatchError. */
export function strategicMergePatch(_original: JsonObject, _patch: Json, _schema: Schema): JsonObject {
  return pending();
}
/** A patch that cannot be applied: answer with a Status of this `code`, `reason` and `message`. */
export class PatchError extends Error {
  readonly code: 400 | 422 | 500;
  readonly reason: "BadRequest" | "Invalid" | "InternalError";
  constructor(code: 400 | 422 | 500, message: string) {
    super(message);
    this.code = code;
    this.reason = code === 400 ? "BadRequest" : code === 422 ? "Invalid" : "InternalError";
  }
}

/** An entry of metadata.managedFields. */
export interface ManagedFieldsEntry {
  manager?: string;
  operation: "Apply" | "Update";
  apiVersion: string;
  time?: string;
  fieldsType: "FieldsV1";
  fieldsV1: JsonObject;
  subresource?: string;
}
/** A field that the applied configuration sets and another manager owns. */
export interface Conflict {
  /** The owner as the message shows it: `"kubectl" using v1`, `"x" with subresource "status" using v1`. */
  readonly owner: string;
  readonly manager: string;
  /** `.data.a` */
  readonly fieldPath: string;
  /** The Status cause's message: `conflict with "kubectl" using v1`. */
  readonly message: string;
}
/** What an apply is made of. */
export interface ApplyRequest {
  /** The stored object; undefined where the apply creates it. */
  readonly live: JsonObject | undefined;
  readonly applied: JsonObject;
  readonly manager: string;
  readonly apiVersion: string;
  readonly force: boolean;
  readonly schema: Schema | undefined;
  readonly subresource?: string;
  /** Paths (arrays of field names) that this endpoint does not let a client set, such as ["status"]. */
  readonly resetFields?: readonly (readonly string[])[];
  /** Wall time, milliseconds since the epoch. */
  readonly now: number;
}
/** `object` with its managedFields; or the conflicts and the Status message (409); or why it is no object of the schema. */
export type ApplyResult =
  | { readonly object: JsonObject }
  | { readonly conflicts: Conflict[]; readonly message: string }
  | { readonly error: PatchError };
/** Server-side apply. The result equals `live` (managedFields included) where nothing changed: do not store it then. */
export function serverSideApply(_request: ApplyRequest): ApplyResult {
  return pending();
}
/** What a write that is no apply is made of. */
export interface UpdateRequest {
  /** The stored object; undefined for a create. */
  readonly before: JsonObject | undefined;
  /** The object about to be stored, defaults included; its own metadata.managedFields is read as the client sent it. */
  readonly after: JsonObject;
  readonly manager: string;
  readonly operation: "Update";
  readonly apiVersion: string;
  readonly subresource?: string;
  readonly schema: Schema | undefined;
  readonly resetFields?: readonly (readonly string[])[];
  /** Wall time, milliseconds since the epoch. */
  readonly now: number;
}
/** The metadata.managedFields to store with `after`. */
export function trackUpdate(_request: UpdateRequest): ManagedFieldsEntry[] {
  return pending();
}

/** A custom resource version as the OpenAPI documents need it. */
export interface CustomResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly subresources: { readonly status: boolean; readonly scale: boolean };
  /** `schema.openAPIV3Schema` as the CRD has it; undefined where the schema is unknown. */
  readonly openAPIV3Schema?: JsonObject;
}
/** The document at `/openapi/v3`: where each group-version's document is. */
export function openApiV3Index(_customResources: readonly CustomResource[]): JsonObject {
  return pending();
}
/** The document at `/openapi/v3/api/v1` or `/openapi/v3/apis/<group>/<version>`; `groupVersion` is `v1` or `apps/v1`. */
export function openApiV3(_groupVersion: string, _customResources: readonly CustomResource[]): JsonObject | undefined {
  return pending();
}
/** The document at `/openapi/v2`. */
export function openApiV2(_customResources: readonly CustomResource[]): JsonObject {
  return pending();
}
