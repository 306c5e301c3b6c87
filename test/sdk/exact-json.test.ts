import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorCodes } from "../../runtime/base/errors.ts";
import { InvalidError } from "../../sdk/errors.ts";
import { type NumbersReader, parseJson, writeJson } from "../../sdk/exact-json.ts";
import { wholeNumber } from "../../sdk/index.ts";

type Account = { spec: Record<string, unknown>; [more: string]: unknown };

/** The values that one attempt reads from these texts, and how it writes them. */
function attempt(...texts: string[]) {
  const reader: NumbersReader = { numbers: undefined };
  const [object, ...others] = texts.map((text) => parseJson(text, reader) as Account);
  return { object: object as Account, others, write: (value: unknown) => writeJson(value, reader, "kube.update") };
}

const odd = "9007199254740993";
const even = "9007199254740992";
const account = (id: string) => `{"spec":{"id":${id},"name":"a"}}`;

/** 64-bit integers, most of them beyond 2^53, and some that share a double. */
const integer = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 2n ** 53n - 4n, max: 2n ** 53n + 4n }),
  fc.bigInt({ min: -(2n ** 53n) - 4n, max: -(2n ** 53n) + 4n }),
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    integer,
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("__proto__", "toJSON", "constructor")), tie("tree"), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));

/** JSON of a value whose integers are BigInts. */
const textOf = (value: unknown): string => {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(textOf).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}:${textOf(each)}`)
    .join(",")}}`;
};
const wrapped = fc.tuple(tree).map(([each]) => `{"a":${textOf(each)}}`);

describe("JSON with whole numbers that JavaScript cannot hold", () => {
  it("is written as it was read, where nothing is changed", () => {
    fc.assert(
      fc.property(wrapped, (text) => {
        const { object, write } = attempt(text);
        expect(write(object)).toBe(text);
      }),
    );
  });

  it("reads as JSON.parse reads it", () => {
    fc.assert(
      fc.property(wrapped, (text) => {
        expect(attempt(text).object).toEqual(JSON.parse(text));
      }),
    );
  });

  it("is written with the digits of BigInts of up to 64 bits", () => {
    fc.assert(
      fc.property(tree, (value) => {
        expect(attempt().write({ a: value })).toBe(`{"a":${textOf(value)}}`);
      }),
    );
  });

  it.each<[string, (object: Account) => unknown]>([
    ["a spread", (object) => ({ ...object, spec: { ...object.spec, more: 1 } })],
    ["a structured clone", (object) => structuredClone(object)],
    ["JSON read from JSON", (object) => JSON.parse(JSON.stringify(object))],
    ["another parent", ({ spec }) => ({ kind: "Other", spec })],
    ["another field", ({ spec }) => ({ status: { observed: spec.id } })],
    ["a list", ({ spec }) => ({ ids: [spec.id].map((id) => id).slice() })],
    [
      "copied descriptors",
      ({ spec }) => ({ spec: Object.defineProperties({}, Object.getOwnPropertyDescriptors(spec)) }),
    ],
  ])("keeps a number in %s", (_, copied) => {
    const { object, write } = attempt(account(odd));
    expect(write(copied(object))).toContain(odd);
  });

  it("refuses a copy of a number that stands for two that were read, and keeps both where they were", () => {
    const { object, others, write } = attempt(account(odd), account(even));
    expect([object, ...others].map(write)).toEqual([account(odd), account(even)]);
    expect(() => write({ ...object, spec: { ...object.spec } })).toThrow("kube.update: spec.id is 9007199254740992");
  });

  it("refuses a field that is set to the other of two numbers that JavaScript takes for one", () => {
    const { object, others, write } = attempt(account(odd), account(even));
    object.spec.id = others[0]?.spec.id;
    expect(() => write(object)).toThrow(InvalidError);
  });

  it("refuses lists whose numbers have changed places, if it cannot tell them apart", () => {
    const { object, write } = attempt(`{"spec":{"ids":[${even},${odd}]}}`);
    (object.spec.ids as number[]).reverse();
    expect(() => write(object)).toThrow("spec.ids[0]");
  });

  it("refuses what is computed and may be rounded, and says where it is, with the code of the list of errors", () => {
    const { object, write } = attempt(`{"spec":{"a/b":[{"id":${odd}}]}}`);
    const [first] = object.spec["a/b"] as { id: number }[];
    if (first) first.id += 1000;
    expect(() => write({ object })).toThrow(
      /^WF_ACCESS_INEXACT_NUMBER: kube.update: object.spec\["a\/b"\]\[0\].id is 9007199254741992, .*BigInt/,
    );
    expect(Object.keys(errorCodes)).toContain("WF_ACCESS_INEXACT_NUMBER");
  });

  it("refuses a BigInt that the API server would round", () => {
    expect(() => attempt().write({ spec: { id: 2n ** 63n } })).toThrow("spec.id is a BigInt of more than 64 bits");
  });

  it("writes floating-point numbers as JavaScript does", () => {
    const text = '{"a":1e+21,"b":0.1,"c":1.5e+300,"d":-4503599627370495.5}';
    const { object, write } = attempt(text);
    expect(write({ ...object, e: 2 ** 70 })).toBe(`${text.slice(0, -1)},"e":1.1805916207174113e+21}`);
  });

  it("lets a number be set, deleted, frozen and listed as any other field", () => {
    const { object, write } = attempt(account(odd));
    expect(Object.keys(object.spec)).toEqual(["id", "name"]);
    Object.assign(object.spec, { id: 5 });
    expect(write(object)).toBe(account("5"));
    delete object.spec.id;
    expect(write(object)).toBe('{"spec":{"name":"a"}}');
    const { object: frozen, write: rewrite } = attempt(account(odd));
    Object.freeze(frozen.spec);
    expect(() => {
      frozen.spec.id = 5;
    }).toThrow(TypeError);
    expect(rewrite(frozen)).toBe(account(odd));
  });
});

describe("wholeNumber", () => {
  it("reads each whole number of 64 bits exactly", () => {
    fc.assert(
      fc.property(integer, (number) => {
        expect(wholeNumber(attempt(account(String(number))).object.spec, "id")).toBe(number);
      }),
    );
  });

  it("throws for a copy that was rounded, and for what is not a whole number", () => {
    const { spec } = attempt(account(odd)).object;
    for (const id of [{ ...spec }.id, 0.5, "5", undefined]) {
      expect(() => wholeNumber({ id }, "id")).toThrow(RangeError);
    }
  });

  it("takes the digits that were read for those to be written", () => {
    const { object, write } = attempt(account(odd));
    object.spec.id = wholeNumber(object.spec, "id") + 1n;
    expect(write(object)).toBe(account("9007199254740994"));
  });
});
