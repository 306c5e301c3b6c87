import { goKind } from "../go-text.ts";
import { isObject, type Json, type JsonObject, member, setMember } from "../json.ts";
import { PatchError } from "./patch-error.ts";

/**
 * Applies a JSON merge patch (RFC 7396): a null removes a member, an object is merged, any other value replaces. Throws a
 * PatchError if the patch is not an object.
 */
export function mergePatch(original: JsonObject, patch: Json): JsonObject {
  if (patch === null) throw new PatchError(400, "Invalid JSON Patch");
  if (!isObject(patch)) {
    const into = "Go value of type map[string]interface {}";
    throw new PatchError(400, `error decoding patch: json: cannot unmarshal ${goKind(patch)} into ${into}`);
  }
  return merge(original, patch);
}

function merge(original: Json | undefined, patch: JsonObject): JsonObject {
  const merged: JsonObject = isObject(original) ? { ...original } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else setMember(merged, name, isObject(value) ? merge(member(merged, name), value) : value);
  }
  return merged;
}
