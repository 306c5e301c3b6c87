import { applyPatch } from "rfc6902";
import { goKind } from "../go-text.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import { PatchError } from "./patch-error.ts";

/** Maximum number of operations in a patch, the API server's limit (apiserver's maxJSONPatchOperations). */
const maxOperations = 10_000;
const names = ["add", "remove", "replace", "move", "copy", "test"] as const;

type Operation = Parameters<typeof applyPatch>[1][number];

/**
 * Applies a JSON patch (RFC 6902). Throws a PatchError: 400 if the patch is invalid, 422 if it does not fit the object. Lenient
 * where the real server is: `replace` may add a member, and an absent `value` is null. For `test`, an absent member is null, too.
 */
export function jsonPatch(original: JsonObject, patch: Json): JsonObject {
  if (patch === null) return original;
  if (!Array.isArray(patch)) throw undecodable(patch, "[]handlers.jsonPatchOp");
  if (patch.length > maxOperations) {
    throw new PatchError(
      422,
      `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${patch.length}`,
    );
  }
  // Wraps the object, so that the empty pointer, too, refers to a member of a parent.
  const document = { root: structuredClone(original) };
  for (const operation of patch) {
    if (!isObject(operation)) throw undecodable(operation, "handlers.jsonPatchOp");
    if (!attempt(document, operation)) throw rejected();
  }
  if (!isObject(document.root)) throw rejected();
  return document.root;
}

function undecodable(value: Json, type: string): PatchError {
  return new PatchError(
    400,
    `error decoding patch: json: cannot unmarshal ${goKind(value)} into Go value of type ${type}`,
  );
}

function rejected(): PatchError {
  return new PatchError(422, "the server rejected our request due to an error in our request");
}

function attempt(document: { root: JsonObject }, operation: JsonObject): boolean {
  const { op, path, from, value = null } = operation;
  if (!names.some((name) => name === op) || typeof path !== "string") return false;
  const needsFrom = op === "move" || op === "copy";
  if (needsFrom && typeof from !== "string") return false;
  const source = needsFrom ? { from: `/root${from}` } : {};
  const run = (name: Json): boolean => {
    const below = { op: name, path: `/root${path}`, value, ...source } as Operation;
    try {
      return applyPatch(document, [below])[0] === null;
    } catch {
      return false; // an invalid pointer
    }
  };
  if (run(op ?? null)) return true;
  if (op === "replace") return !isItem(document, path) && run("add");
  return op === "test" && value === null && !run("remove");
}

/** True if the pointer's last step is a list item. A list has no item to replace beyond its end. */
function isItem(document: { root: JsonObject }, path: string): boolean {
  const parent = path.slice(0, path.lastIndexOf("/"));
  let node: Json | undefined = document.root;
  for (const token of parent.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    node = Array.isArray(node) ? node[Number(name)] : isObject(node) ? node[name] : undefined;
  }
  return Array.isArray(node);
}
