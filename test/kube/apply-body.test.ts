import fc from "fast-check";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { parseExactly } from "../../runtime/base/exact-json.ts";
import { applyBody } from "../../runtime/kube/apply-body.ts";

/** Characters that the two languages treat differently are more frequent. */
const text = fc.string({
  unit: fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom(
        "\u007f",
        "\u0085",
        "\u00a0",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\ufffe",
        "\t",
        "\n",
        "\r",
        ":",
        "#",
      ),
    },
    { weight: 1, arbitrary: fc.string({ unit: "binary", minLength: 1, maxLength: 1 }) },
  ),
});
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(text, tie("tree"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));
const object = fc.tuple(text, tree).map(([key, value]) => ({ [key]: value }));

it.each(["1.1", "1.2"] as const)("a body of an apply is the same as YAML %s and as JSON", (version) => {
  fc.assert(
    fc.property(object, (value) => {
      const body = applyBody(value);
      expect(JSON.parse(body)).toEqual(value);
      // `merge` of YAML 1.1 would interpret a key `<<`, which no text here contains.
      expect(parse(body, { version, stringKeys: true })).toEqual(value);
    }),
    { numRuns: 1000 },
  );
});

it("a body of an apply has only characters that every YAML parser takes as they are", () => {
  fc.assert(
    fc.property(object, (value) => {
      // ASCII and surrogate pairs.
      expect(applyBody(value)).toMatch(/^(?:[\x20-\x7e]|[\ud800-\udbff][\udc00-\udfff])*$/);
    }),
  );
});

it("a body of an apply has whole numbers as they were read", () => {
  expect(applyBody(parseExactly('{"id":9007199254740993}') as object)).toBe('{"id":9007199254740993}');
});
