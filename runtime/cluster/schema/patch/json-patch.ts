import { goKind } from "../go-text.ts";
import { isObject, type Json, type JsonObject, jsonEqual, member, setMember } from "../json.ts";
import { PatchError } from "./patch-error.ts";

/** Maximum number of operations in a patch, the API server's limit (apiserver's maxJSONPatchOperations). */
const maxOperations = 10_000;

/** An operation that does not apply. */
class DoesNotApply extends Error {}

/**
 * Applies a JSON patch (RFC 6902). Throws a PatchError: 400 if the patch is invalid, 422 if it does not fit the object.
 * Reads RFC 6902 as the real server's library does (evanphx/json-patch v4): a missing member is null, so that `replace` adds it,
 * `copy` copies null, and `test` finds null. A negative index counts from a list's end. The only operation on the whole document is
 * `replace`.
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
  let document = structuredClone(original);
  for (const operation of patch) {
    if (!isObject(operation)) throw undecodable(operation, "handlers.jsonPatchOp");
    try {
      if (operation.op === "replace" && operation.path === "") document = whole(operation.value);
      else apply(document, operation);
    } catch (error) {
      if (error instanceof DoesNotApply) throw rejected();
      throw error;
    }
  }
  return document;
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

function whole(value: Json | undefined): JsonObject {
  if (isObject(value)) return value;
  throw new DoesNotApply();
}

function apply(document: JsonObject, { op, path, from, value = null }: JsonObject): void {
  const place = placeOf(document, path);
  if (op === "add") place.add(value);
  else if (op === "remove") place.remove();
  else if (op === "replace") place.set(value);
  else if (op === "copy") place.add(structuredClone(placeOf(document, from).get()));
  else if (op === "move") {
    const source = placeOf(document, from);
    const moved = source.get();
    source.remove();
    // The source's removal may have moved the items of a list that holds the target.
    placeOf(document, path).add(moved);
  } else if (op !== "test" || !jsonEqual(place.get(), value)) throw new DoesNotApply();
}

/** A member of an object or an item of a list. Every method throws DoesNotApply if it is not possible. */
interface Place {
  /** Null for a member that is missing. */
  get(): Json;
  set(value: Json): void;
  add(value: Json): void;
  remove(): void;
}

function placeOf(document: JsonObject, pointer: Json | undefined): Place {
  if (typeof pointer !== "string") throw new DoesNotApply();
  const tokens = pointer.split("/").map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = tokens.pop() ?? "";
  if (tokens.length === 0) throw new DoesNotApply();
  let node: Json = document;
  for (const token of tokens.slice(1)) node = within(node, token).get();
  return within(node, last);
}

function within(node: Json, token: string): Place {
  if (Array.isArray(node)) return new Item(node, token);
  if (isObject(node)) return new Member(node, token);
  throw new DoesNotApply();
}

class Member implements Place {
  private readonly object: JsonObject;
  private readonly name: string;

  constructor(object: JsonObject, name: string) {
    this.object = object;
    this.name = name;
  }

  get(): Json {
    return member(this.object, this.name) ?? null;
  }

  set(value: Json): void {
    setMember(this.object, this.name, value);
  }

  add(value: Json): void {
    this.set(value);
  }

  remove(): void {
    if (!Object.hasOwn(this.object, this.name)) throw new DoesNotApply();
    delete this.object[this.name];
  }
}

class Item implements Place {
  private readonly list: Json[];
  private readonly token: string;

  constructor(list: Json[], token: string) {
    this.list = list;
    this.token = token;
  }

  get(): Json {
    return this.list[this.index(this.list.length - 1)] ?? null;
  }

  set(value: Json): void {
    this.list[this.index(this.list.length - 1)] = value;
  }

  add(value: Json): void {
    if (this.token === "-") this.list.push(value);
    else this.list.splice(this.index(this.list.length), 0, value);
  }

  remove(): void {
    this.list.splice(this.index(this.list.length - 1), 1);
  }

  private index(most: number): number {
    if (!/^[+-]?\d+$/.test(this.token)) throw new DoesNotApply();
    const given = Number(this.token);
    const index = given < 0 ? given + this.list.length : given;
    if (index < 0 || index > most) throw new DoesNotApply();
    return index;
  }
}
