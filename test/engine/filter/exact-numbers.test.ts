import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FieldsDigest } from "../../../runtime/engine/filter/changed-fields.ts";
import { type ConditionError, MatchConditions } from "../../../runtime/engine/filter/conditions.ts";
import { KeyOf } from "../../../runtime/engine/filter/key-rule.ts";

const least = -(2n ** 63n);
const most = 2n ** 63n - 1n;
const near = (centre: bigint) =>
  fc.bigInt({ min: -3n, max: 3n }).map((step) => {
    const value = centre + step;
    return value < least ? least : value > most ? most : value;
  });

/** 64-bit integers, many of them around the point where doubles have gaps, and at the limits. */
const int64 = fc.oneof(fc.bigInt({ min: least, max: most }), ...[0n, 2n ** 53n, -(2n ** 53n), least, most].map(near));
/** Two such integers, often adjacent. */
const pair = fc.oneof(
  fc.tuple(int64, int64),
  int64.chain((one) => near(one).map((other) => [one, other] as [bigint, bigint])),
);

const body = (n: string | bigint, text = "") => Buffer.from(`{"kind":"Account","spec":{"n":${n},"text":"${text}"}}`);

/** The result of one condition on an object and its previous state; a message if it has no value. */
function answer(expression: string, object: string | bigint, old: string | bigint = 0n): boolean | string {
  const errors: ConditionError[] = [];
  const conditions = new MatchConditions([{ name: "c", expression }]);
  const refusal = conditions.refusal({ body: body(object) }, body(old), { onError: (error) => errors.push(error) });
  return errors[0]?.message ?? refusal === undefined;
}

const half = (n: bigint) => n / 2n;

describe("a condition", () => {
  it.each<[string, (n: bigint, old: bigint) => boolean]>([
    ["object.spec.n == oldObject.spec.n", (n, old) => n === old],
    ["object.spec.n != oldObject.spec.n", (n, old) => n !== old],
    ["object.spec.n < oldObject.spec.n", (n, old) => n < old],
    ["object.spec.n <= oldObject.spec.n", (n, old) => n <= old],
    ["object.spec.n > oldObject.spec.n", (n, old) => n > old],
    ["object.spec.n >= oldObject.spec.n", (n, old) => n >= old],
    ["object == oldObject", (n, old) => n === old],
    ["object.spec.n in [oldObject.spec.n]", (n, old) => n === old],
    ["object.spec.n / 2 == oldObject.spec.n / 2", (n, old) => half(n) === half(old)],
    ["string(object.spec.n) == string(oldObject.spec.n)", (n, old) => n === old],
    ["[object.spec.n, oldObject.spec.n].min() == object.spec.n", (n, old) => n <= old],
    ["sets.contains([object.spec.n], [oldObject.spec.n])", (n, old) => n === old],
  ])("sees any two ints of 64 bits as they are: %s", (expression, expected) => {
    fc.assert(
      fc.property(pair, ([n, old]) => {
        expect(answer(expression, n, old)).toBe(expected(n, old));
      }),
    );
  });

  it("knows every int of 64 bits as an int, and adds to it without rounding", () => {
    fc.assert(
      fc.property(int64, (n) => {
        expect(answer("type(object.spec.n) == int", n)).toBe(true);
        expect(answer(`object.spec.n == ${n}`, n)).toBe(true);
        const sum = answer("object.spec.n + 1 > object.spec.n", n);
        expect(sum).toBe(n === most ? "integer overflow" : true);
      }),
    );
  });

  it.each([
    // As Kubernetes decodes JSON: an int64 if the number is written as one and fits, else a float64.
    ["1", "int"],
    ["1.0", "double"],
    ["1e3", "double"],
    ["-0", "int"],
    ["-0.0", "double"],
    ["9007199254740993", "int"],
    ["9007199254740993.0", "double"],
    ["9223372036854775807", "int"],
    ["9223372036854775808", "double"],
    ["-9223372036854775808", "int"],
    ["-9223372036854775809", "double"],
    ["18446744073709551615", "double"],
  ])("reads %s as %s", (text, type) => {
    expect(answer(`type(object.spec.n) == ${type}`, text)).toBe(true);
  });

  it("compares an int with a double by value, as cel-go does", () => {
    expect(answer("object.spec.n == oldObject.spec.n", "1.0", "1")).toBe(true);
    expect(answer("object.spec.n == oldObject.spec.n", "1000", "1e3")).toBe(true);
    expect(answer("object.spec.n < oldObject.spec.n", "9007199254740993", "9007199254740994.0")).toBe(true);
    expect(answer("{1: true}[?object.spec.n].hasValue()", "1.0")).toBe(true);
    expect(answer("{9007199254740993: true}[?object.spec.n].hasValue()", "9007199254740993")).toBe(true);
    expect(answer("{9007199254740993: true}[?object.spec.n].hasValue()", "9007199254740992")).toBe(false);
    expect(answer("{9007199254740992: true}[?object.spec.n].hasValue()", "9007199254740992.0")).toBe(true);
  });

  it("has no value, and is not taken for true, where an int is an index far beyond its list or text", () => {
    for (const n of [2n ** 53n + 1n, most, least]) {
      for (const expression of [
        "[1, 2][object.spec.n] == 1",
        "'ab'.charAt(object.spec.n) == 'a'",
        "'ab'.substring(object.spec.n) == 'a'",
        "[1, 2].slice(0, object.spec.n) == [1, 2]",
      ]) {
        expect(answer(expression, n)).toMatch(/index/);
      }
    }
  });

  it("reads numbers that stand in texts as texts", () => {
    const conditions = new MatchConditions([
      { name: "c", expression: `object.spec.text == '":1.5,9007199254740993' && object.spec.n == 9007199254740993` },
    ]);
    const text = body(9007199254740993n, '\\":1.5,9007199254740993');
    expect(conditions.refusal({ body: text }, "none", { onError: () => {} })).toBeUndefined();
  });
});

describe("the key of an expression", () => {
  it("holds every digit of an int", () => {
    const key = new KeyOf({ type: "expression", expression: "'account-' + string(object.spec.n)" });
    fc.assert(
      fc.property(int64, (n) => {
        expect(key.of({ namespace: "team", body: body(n) })).toEqual({ keys: [`team/account-${n}`] });
      }),
    );
  });
});

describe("changed fields", () => {
  const digest = (text: string | bigint) => new FieldsDigest([["spec", "n"]]).ofBytes(body(text));

  it("see every change of an int", () => {
    fc.assert(
      fc.property(pair, ([one, other]) => {
        expect(digest(one) === digest(other)).toBe(one === other);
      }),
    );
  });

  it("see a change beyond 64 bits, and one from a number to the text of it", () => {
    expect(digest("18446744073709551615")).not.toBe(digest("18446744073709551614"));
    expect(digest("9007199254740993")).not.toBe(digest('"9007199254740993"'));
    expect(digest("9007199254740993")).not.toBe(digest('{"integer":"9007199254740993"}'));
  });

  it("see no change where a number is written in another form", () => {
    for (const [one, other] of [
      ["1", "1.0"],
      ["1000", "1e3"],
      ["0.5", "5E-1"],
    ] as const) {
      expect(digest(one)).toBe(digest(other));
    }
  });
});
