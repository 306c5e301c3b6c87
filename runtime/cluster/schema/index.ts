/**
 * Schemas of the embedded API server: pure functions over JSON. The only I/O is the data file of the built-in kinds, which is
 * read on first use. Arguments are never changed; results may share parts with them, so treat both as immutable.
 */
export { type ApplyRequest, type ApplyResult, serverSideApply } from "./apply/apply.ts";
export type { Conflict } from "./apply/conflict.ts";
export type { ManagedFieldsEntry } from "./apply/managers.ts";
export { trackUpdate, type UpdateRequest } from "./apply/track-update.ts";
export { type BuiltInResource, builtInResources, builtInSchema, microTime } from "./built-in.ts";
export { canonical, inOrder, withoutEmpty } from "./canonical.ts";
export { applyDefaults } from "./defaults.ts";
export { type FieldError, fieldErrorText, invalidMessage, statusCauses } from "./field-error.ts";
export { goKind } from "./go-text.ts";
export type { Json, JsonObject } from "./json.ts";
export { type CustomResource, openApiV2, openApiV3, openApiV3Index } from "./openapi/documents.ts";
export { jsonPatch } from "./patch/json-patch.ts";
export { mergePatch } from "./patch/merge-patch.ts";
export { PatchError } from "./patch/patch-error.ts";
export { strategicMergePatch } from "./patch/strategic-merge.ts";
export { prune } from "./prune.ts";
export type { Schema, SchemaKind, ValidationRule } from "./schema.ts";
export { structuralSchema } from "./structural/structural.ts";
export { matchesFormat } from "./validation/formats.ts";
export { validate } from "./validation/validate.ts";
