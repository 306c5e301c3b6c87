import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exactInteger, parseExactly, textOfNumber } from "../../runtime/base/exact-json.ts";

const { tree } = fc.letrec<{ tree: string }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    fc.bigInt().map(String),
    fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
    fc.constantFrom("true", "null", "0.5", "-1", "1e+21"),
    fc.array(tie("tree"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
    fc.dictionary(fc.string(), tie("tree"), { maxKeys: 4 }).map((fields) => {
      const members = Object.entries(fields).map(([key, value]) => `${JSON.stringify(key)}:${value}`);
      return `{${members.join(",")}}`;
    }),
  ),
}));

describe("JSON that the parent reads and writes again", () => {
  it("has each whole number as it came, of any size", () => {
    fc.assert(
      fc.property(tree, (json) => {
        expect(JSON.stringify(parseExactly(json))).toBe(json);
      }),
    );
  });

  it("is read as JSON.parse reads it where no number is beyond 2^53", () => {
    fc.assert(
      fc.property(
        fc.json().filter((json) => !/\d{16}/.test(json)),
        (json) => {
          expect(parseExactly(json)).toEqual(JSON.parse(json));
        },
      ),
    );
  });

  it("has the text of a number that JavaScript cannot hold, and numbers of others", () => {
    fc.assert(
      fc.property(fc.bigInt(), (number) => {
        const [read, made] = [parseExactly(`[ ${number}]`) as unknown[], [exactInteger(number)]];
        for (const [value] of [read, made]) expect(textOfNumber(value) ?? String(value)).toBe(String(number));
      }),
    );
  });
});
