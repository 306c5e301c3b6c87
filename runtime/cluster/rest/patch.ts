import { isFields, type KubeObject } from "../api/object.ts";
import { ApiError, badRequest, fault, invalid, modified, notFound, unsupportedMediaType } from "../api/status.ts";
import { encodeJson } from "../exact-json.ts";
import { servedVersion } from "../kinds/resource-type.ts";
import { asJson, asObject, json } from "../kinds/shape.ts";
import { typeMismatch } from "../kinds/type-mismatch.ts";
import {
  type JsonObject,
  jsonPatch,
  mergePatch,
  PatchError,
  serverSideApply,
  strategicMergePatch,
} from "../schema/index.ts";
import { admitFields, resetFields, withManagedFields } from "./admission.ts";
import { asObjectOf, type Body, parseBody } from "./body.ts";
import { type Call, callKey } from "./call.ts";
import { kept, prepareNew, seen, store } from "./create.ts";
import { replace, type Updated } from "./update.ts";

/** The media types of a PATCH. Custom resources do not support strategic merge. */
const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

const patchOptions = { group: "meta.k8s.io", kind: "PatchOptions" };

/** Patches an object by a PATCH's body. Throws 4xx. */
export function patch(call: Call, body: Body, force: boolean): Updated {
  if (body.mediaType === patchTypes.apply) return apply(call, body, force);
  if (call.query.get("force"))
    throw invalid(patchOptions, "", [fault.forbidden("force", "may not be specified for non-apply patch")]);
  const { type, backend } = call;
  const allowed = Object.values(patchTypes).filter((one) => !(type.custom && one === patchTypes.strategic));
  if (!allowed.some((one) => one === body.mediaType)) throw unsupportedPatch(call, allowed);
  const existing = backend.store.get(type.storage, callKey(call));
  if (!existing) throw notFound(type, call.name);
  const patched = asObject(patchedJson(call, seen(call, existing.object), body));
  const schema = type.custom ? undefined : type.schema();
  const mismatch = schema && typeMismatch(schema, patched, type.kind);
  if (mismatch) throw invalid({ group: "", kind: "" }, "", [fault.invalid("patch", encodeJson(patched), mismatch)]);
  const object = admitFields(call, asObjectOf(patched, type));
  if (object.metadata.resourceVersion && object.metadata.resourceVersion !== existing.object.metadata.resourceVersion)
    throw modified(type, call.name);
  return replace(call, existing, kept(call, asJson(object)), withManagedFields);
}

function unsupportedPatch(call: Call, allowed: readonly string[]): ApiError {
  if (call.type.custom) return unsupportedMediaType(allowed);
  return new ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
}

/** Returns the object with the patch applied, for each of the three types other than apply. */
export function patchedJson(call: Call, original: JsonObject, body: Body): JsonObject {
  const value = json(parsePatch(body));
  try {
    if (body.mediaType === patchTypes.json) return jsonPatch(original, value);
    const schema = call.type.schema();
    if (body.mediaType === patchTypes.strategic && schema) return strategicMergePatch(original, value, schema);
    return mergePatch(original, value);
  } catch (error) {
    throw patchFailure(error);
  }
}

function parsePatch(body: Body): unknown {
  const mediaType = body.mediaType === patchTypes.apply ? "application/yaml" : "";
  return parseBody({ bytes: body.bytes, mediaType }, ({ message, written }) => {
    if (body.mediaType === patchTypes.apply) return `error decoding YAML: ${message}`;
    if (body.mediaType === patchTypes.strategic) return message;
    const into = body.mediaType === patchTypes.json ? "Go struct field jsonPatchOp.value" : "Go value";
    return `error decoding patch: json: cannot unmarshal number ${written} into ${into} of type float64`;
  });
}

function patchFailure(error: unknown): unknown {
  if (!(error instanceof PatchError)) return error;
  if (error.code === 400) return badRequest(error.message);
  return new ApiError(error.code, error.reason, error.message, error.code === 422 ? {} : undefined);
}

/** Server-side apply: merges the manager's configuration with the fields that others own. */
function apply(call: Call, body: Body, force: boolean): Updated {
  const { type, backend } = call;
  if (!call.query.get("fieldManager"))
    throw invalid(patchOptions, "", [fault.required("fieldManager", "is required for apply patch")]);
  const sent = parsePatch(body);
  if (!isFields(sent) || !sent.apiVersion || !sent.kind)
    throw badRequest(`error decoding YAML: Object 'Kind' is missing in '${body.bytes.toString("utf8").slice(0, 200)}'`);
  const applied = asObjectOf(sent, type);
  if (applied.metadata.managedFields !== undefined) throw badRequest("metadata.managedFields must be nil");
  const existing = backend.store.get(type.storage, callKey(call));
  if (!existing && call.subresource !== "") throw notFound(type, call.name);
  if (!existing && !applied.metadata.name)
    throw badRequest(`the name of the object (${call.name} based on URL) was undeterminable: name must be provided`);
  const { uid, resourceVersion } = applied.metadata;
  if (existing && resourceVersion && resourceVersion !== existing.object.metadata.resourceVersion)
    throw modified(type, call.name);
  if (!existing && (uid || resourceVersion)) throw notFound(type, call.name);
  const base = existing ? seen(call, existing.object) : undefined;
  const merged = kept(call, applyOnto(call, base, applied, force));
  const managed = merged.metadata.managedFields;
  if (existing) return replace(call, existing, merged, (_, object) => object);
  const { managedFields: _, ...metadata } = merged.metadata;
  const object = prepareNew(call, { ...merged, metadata });
  const tracked = managed ? { ...object, metadata: { ...object.metadata, managedFields: managed } } : object;
  return { revision: store(call, tracked), created: true };
}

function applyOnto(call: Call, live: JsonObject | undefined, applied: KubeObject, force: boolean): JsonObject {
  const result = serverSideApply({
    live,
    applied: asJson(applied),
    manager: call.manager,
    apiVersion: servedVersion(call.type),
    force,
    schema: call.type.schema(),
    ...(call.subresource === "" ? {} : { subresource: call.subresource }),
    resetFields: resetFields(call),
    now: call.backend.clock.now(),
  });
  if ("object" in result) return result.object;
  if ("error" in result) throw patchFailure(result.error);
  throw new ApiError(409, "Conflict", result.message, {
    causes: result.conflicts.map(({ message, fieldPath }) => ({
      reason: "FieldManagerConflict",
      message,
      field: fieldPath,
    })),
  });
}
