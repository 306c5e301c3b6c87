import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Json,
  type JsonObject,
  jsonPatch,
  mergePatch,
  PatchError,
} from "../../../runtime/cluster/schema/index.ts";

const refusal = (act: () => unknown): [number, string] => {
  try {
    act();
  } catch (error) {
    if (error instanceof PatchError) return [error.code, error.message];
    throw error;
  }
  return [200, "no error"];
};
const json = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;
const anyObject = fc.object({ maxDepth: 3, withNullPrototype: false }).map(json);
const withoutNulls = (value: Json): Json => {
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== null)
      .map(([name, child]) => [name, withoutNulls(child)]),
  );
};

describe("a merge patch", () => {
  it("merges objects, removes by null and replaces the rest, lists included", () => {
    const original = { a: { b: 1, c: [1, 2] }, d: 1 };
    expect(mergePatch(original, { a: { b: null, c: [3] }, d: { e: null, f: 1 } })).toEqual({
      a: { c: [3] },
      d: { f: 1 },
    });
    expect(original).toEqual({ a: { b: 1, c: [1, 2] }, d: 1 });
  });

  it("applied twice is the same as once", () => {
    fc.assert(
      fc.property(anyObject, anyObject, (original, patch) => {
        const once = mergePatch(original, patch);
        expect(mergePatch(once, patch)).toEqual(once);
      }),
    );
  });

  it("that is empty changes nothing, and on nothing gives itself without its nulls", () => {
    fc.assert(
      fc.property(anyObject, (object) => {
        expect(mergePatch(object, {})).toEqual(object);
        expect(mergePatch({}, object)).toEqual(withoutNulls(object));
      }),
    );
  });

  it("sets a member named __proto__ as any other", () => {
    const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}') as Json);
    expect(Object.keys(merged)).toEqual(["__proto__"]);
    expect(({} as { polluted?: true }).polluted).toBeUndefined();
  });

  it("that is no object is refused", () => {
    expect(refusal(() => mergePatch({}, []))).toEqual([
      400,
      "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
    ]);
  });
});

describe("a JSON patch", () => {
  const original = { data: { a: "1" }, list: [1, 2] };
  it("runs its operations in order, on a copy", () => {
    const patch: Json = [
      { op: "test", path: "/data/a", value: "1" },
      { op: "add", path: "/list/-", value: 3 },
      { op: "move", from: "/data/a", path: "/data/b~1c" },
      { op: "copy", from: "/list/0", path: "/list/1" },
      { op: "remove", path: "/list/0" },
    ];
    expect(jsonPatch(original, patch)).toEqual({ data: { "b/c": "1" }, list: [1, 2, 3] });
    expect(original).toEqual({ data: { a: "1" }, list: [1, 2] });
  });

  it("replaces the whole document at the empty pointer", () => {
    expect(jsonPatch(original, [{ op: "replace", path: "", value: { x: 1 } }])).toEqual({ x: 1 });
  });

  it.each<[string, Json]>([
    ["a test that fails", [{ op: "test", path: "/data/a", value: "2" }]],
    ["what is not there", [{ op: "remove", path: "/data/z" }]],
    ["a parent that is not there", [{ op: "add", path: "/z/a", value: 1 }]],
    ["an index beyond the list", [{ op: "replace", path: "/list/9", value: 1 }]],
    ["an unknown operation", [{ op: "frob", path: "/data" }]],
    ["no path", [{ op: "add", value: 1 }]],
  ])("with %s is a 422", (_, patch) => {
    expect(refusal(() => jsonPatch(original, patch))).toEqual([
      422,
      "the server rejected our request due to an error in our request",
    ]);
  });

  it("that is no list of operations is a 400", () => {
    expect(refusal(() => jsonPatch(original, {}))[0]).toBe(400);
    expect(refusal(() => jsonPatch(original, [1]))[0]).toBe(400);
  });

  it("replaces a member that is not there, and finds null in its place, as the API server does", () => {
    expect(jsonPatch(original, [{ op: "replace", path: "/data/z", value: "1" }])).toMatchObject({ data: { z: "1" } });
    expect(jsonPatch(original, [{ op: "test", path: "/data/z", value: null }])).toEqual(original);
  });
});
