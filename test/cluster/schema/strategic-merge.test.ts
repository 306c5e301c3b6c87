import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  builtInSchema,
  type Json,
  type JsonObject,
  PatchError,
  strategicMergePatch,
} from "../../../runtime/cluster/schema/index.ts";

const podSchema = builtInSchema("", "v1", "Pod") ?? {};
const deploymentSchema = builtInSchema("apps", "v1", "Deployment") ?? {};
const env = {
  env: [
    { name: "A", value: "1" },
    { name: "B", value: "2" },
  ],
};
const pod: JsonObject = {
  metadata: { finalizers: ["x/a", "x/b"], labels: { l: "1" } },
  spec: {
    containers: [
      { name: "c", image: "i", args: ["1", "2"], ...env },
      { name: "d", image: "i" },
    ],
    tolerations: [{ key: "k" }],
  },
};
const patched = (patch: JsonObject): JsonObject => strategicMergePatch(pod, patch, podSchema);
const containers = (patch: Json[], rest: JsonObject = {}): JsonObject[] => {
  const { spec } = patched({ spec: { containers: patch, ...rest } });
  return (spec as unknown as { containers: JsonObject[] }).containers;
};
const names = (items: JsonObject[]): Json[] => items.map(({ name = null }) => name);
const refusal = (patch: JsonObject): [number, string] => {
  try {
    patched(patch);
  } catch (error) {
    if (error instanceof PatchError) return [error.code, error.message];
  }
  return [200, ""];
};

describe("a strategic merge patch", () => {
  it("merges lists of objects by their key, at every depth", () => {
    const [c, d] = containers([{ name: "c", env: [{ name: "B", value: "3" }] }]);
    expect(c).toMatchObject({
      image: "i",
      env: [
        { name: "A", value: "1" },
        { name: "B", value: "3" },
      ],
    });
    expect(d).toEqual({ name: "d", image: "i" });
  });

  it("removes what it sets to null, at every depth", () => {
    const { metadata } = patched({ metadata: { finalizers: null, labels: { l: null } } });
    expect(metadata).toEqual({ labels: {} });
    expect(containers([{ name: "c", env: null }])[0]).not.toHaveProperty("env");
  });

  it("replaces a list that has no merge key", () => {
    expect(containers([{ name: "c", args: ["9"] }])[0]?.args).toEqual(["9"]);
    expect(patched({ spec: { tolerations: [{ key: "z" }] } }).spec).toMatchObject({ tolerations: [{ key: "z" }] });
  });

  it("puts a new item first, as it says nothing of the order", () => {
    expect(names(containers([{ name: "e", image: "i" }]))).toEqual(["e", "c", "d"]);
  });

  it("orders items by $setElementOrder, others staying where they stood", () => {
    const order = (...list: string[]) => ({ "$setElementOrder/containers": list.map((name) => ({ name })) });
    expect(names(containers([{ name: "e", image: "i" }], order("d", "e", "c")))).toEqual(["d", "e", "c"]);
    expect(names(containers([{ name: "e", image: "i" }], order("e", "d")))).toEqual(["e", "c", "d"]);
    const { spec } = patched({ spec: order("d", "c") });
    expect(names((spec as unknown as { containers: JsonObject[] }).containers)).toEqual(["d", "c"]);
  });

  it("deletes an item, or replaces a list or an object, by $patch", () => {
    expect(names(containers([{ name: "c", $patch: "delete" }]))).toEqual(["d"]);
    expect(containers([{ $patch: "replace" }, { name: "z", image: "j" }])).toEqual([{ name: "z", image: "j" }]);
    expect(patched({ metadata: { labels: { $patch: "replace", z: "1" } } }).metadata).toMatchObject({
      labels: { z: "1" },
    });
    expect(patched({ metadata: { labels: { $patch: "delete" } } }).metadata).toMatchObject({ labels: {} });
  });

  it("adds to and deletes from a list of strings", () => {
    const finalizers = (metadata: JsonObject) => (patched({ metadata }).metadata as JsonObject).finalizers;
    expect(finalizers({ finalizers: ["x/c"] })).toEqual(["x/c", "x/a", "x/b"]);
    expect(finalizers({ "$deleteFromPrimitiveList/finalizers": ["x/a"] })).toEqual(["x/b"]);
  });

  it("keeps of a union only what $retainKeys names", () => {
    const deployment = { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } } } };
    const patch = { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } };
    expect(strategicMergePatch(deployment, patch, deploymentSchema)).toEqual({
      spec: { strategy: { type: "Recreate" } },
    });
  });

  it.each<[string, JsonObject, number, string]>([
    [
      "an item without its key",
      { spec: { containers: [{ image: "j" }] } },
      500,
      "map: map[image:j] does not contain declared merge key: name",
    ],
    [
      "an unknown directive",
      { metadata: { labels: { $patch: "frob" } } },
      500,
      "unknown patch type: frob in map: map[$patch:frob]",
    ],
    [
      "no list for a list",
      { spec: { containers: "x" } },
      422,
      ' "" is invalid: patch: Invalid value: "map[spec:map[containers:x]]": cannot restore slice from string',
    ],
    [
      "$retainKeys without a key it sets",
      { metadata: { labels: { $retainKeys: ["a"], b: "1" } } },
      400,
      "invalid patch format of retainKeys",
    ],
  ])("with %s is refused", (_, patch, code, message) => {
    expect(refusal(patch)).toEqual([code, message]);
  });

  it("of two edits of different containers keeps both, in either order", () => {
    const edit = fc.record({ name: fc.constantFrom("c", "d"), image: fc.string(), workingDir: fc.string() });
    fc.assert(
      fc.property(edit, edit, (one, two) => {
        fc.pre(one.name !== two.name);
        const apply = (object: JsonObject, item: JsonObject) =>
          strategicMergePatch(object, { spec: { containers: [item] } }, podSchema);
        expect(apply(apply(pod, one), two)).toEqual(apply(apply(pod, two), one));
      }),
    );
  });

  it("made of the difference of two lists leads from the one to the other, whatever a third party added", () => {
    const list = fc.uniqueArray(
      fc.record({ name: fc.constantFrom("a", "b", "c", "d"), image: fc.constantFrom("1", "2") }),
      { selector: ({ name }) => name },
    );
    fc.assert(
      fc.property(list, list, (last, next) => {
        const live: JsonObject = { spec: { containers: [...last, { name: "injected", image: "sidecar" }] } };
        const gone = last.filter(({ name }) => !next.some((item) => item.name === name));
        const patch: JsonObject = {
          spec: {
            "$setElementOrder/containers": next.map(({ name }) => ({ name })),
            containers: [...next, ...gone.map(({ name }) => ({ $patch: "delete", name }))],
          },
        };
        const { spec } = strategicMergePatch(live, patch, podSchema);
        const merged = (spec as unknown as { containers: JsonObject[] }).containers;
        expect(merged.filter(({ name }) => name !== "injected")).toEqual(next);
        expect(merged).toContainEqual({ name: "injected", image: "sidecar" });
      }),
    );
  });
});
