import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { labelSelectorText, matchesLabels, parseLabelSelector } from "../../runtime/cluster/api/label-selector.ts";
import { jsonPath } from "../../runtime/cluster/crd/json-path.ts";
import { age } from "../../runtime/cluster/kinds/age.ts";
import { duplicateFields } from "../../runtime/cluster/rest/duplicate-fields.ts";

describe("a label selector", () => {
  test.each([
    ["a=b", { a: "b" }, true],
    ["a==b,c!=d", { a: "b" }, true],
    ["a in (x, y),!z", { a: "y" }, true],
    ["a notin (x)", {}, true],
    ["a,b", { a: "" }, false],
    ["n>5", { n: "6" }, true],
    ["n<5", { n: "6" }, false],
    ["a=", { a: "" }, true],
    ["a=b", { a: "c" }, false],
  ])("%s of %j is %s", (selector, labels, expected) => {
    expect(matchesLabels(parseLabelSelector(selector), labels as unknown as Record<string, string>)).toBe(expected);
  });

  test.each(["a b", "a in b", "a=b c", "=b", "a in (b", "!"])("%s is refused", (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow("unable to parse requirement");
  });

  test("written out and read again means the same", () => {
    const label = fc.constantFrom("a", "b", "c");
    const selector = fc.record({ matchLabels: fc.dictionary(label, label) });
    fc.assert(
      fc.property(selector, fc.dictionary(label, label), (one, labels) => {
        const expected = Object.entries(one.matchLabels).every(([key, value]) => labels[key] === value);
        expect(matchesLabels(parseLabelSelector(labelSelectorText(one)), labels)).toBe(expected);
      }),
    );
  });
});

describe("duplicate fields of a JSON body", () => {
  const of = (text: string) => duplicateFields({ bytes: Buffer.from(text), mediaType: "application/json" });

  test("are told by their paths, in objects and lists, whatever the strings hold", () => {
    expect(of('{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":2}],"e":"\\"a\\":1,\\"a\\":{"}')).toEqual(["a.b", "c[1].d"]);
  });

  test("are never found in what JSON.stringify wrote", () => {
    fc.assert(fc.property(fc.json(), (text) => of(text).length === 0));
  });
});

test("a printer column's path finds members, items and filtered items", () => {
  const object = {
    spec: {
      a: 1,
      list: [
        { t: "x", v: 1 },
        { t: "y", v: 2 },
      ],
    },
    metadata: { annotations: { "a.b/c": "d" } },
  };
  expect(jsonPath(".spec.a")?.(object)).toEqual([1]);
  expect(jsonPath(".spec.list[*].v")?.(object)).toEqual([1, 2]);
  expect(jsonPath('.spec.list[?(@.t=="y")].v')?.(object)).toEqual([2]);
  expect(jsonPath(".spec.list[-1].t")?.(object)).toEqual(["y"]);
  expect(jsonPath(".metadata.annotations.a\\.b/c")?.(object)).toEqual(["d"]);
  expect(jsonPath(".spec.none")?.(object)).toEqual([]);
  expect(jsonPath("spec[")).toBeUndefined();
});

test("an age is written as kubectl writes it", () => {
  const second = 1000;
  expect(
    [1, 119, 120, 605, 3 * 3600, 9 * 3600, 49 * 3600, 9 * 86_400, 800 * 86_400].map((one) => age(one * second)),
  ).toEqual(["1s", "119s", "2m", "10m", "3h", "9h", "2d1h", "9d", "2y70d"]);
});
