import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeJson, parseJson, parseWritten, UnreadableNumber } from "../../runtime/cluster/exact-json.ts";

const least = -(2n ** 63n);
const most = 2n ** 63n - 1n;
/** 64-bit integers, many of them around the point where doubles have gaps, and at the limits. */
const int64 = fc.oneof(
  fc.bigInt({ min: least, max: most }),
  fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }),
  fc.constantFrom(least, most, -(2n ** 53n), 0n),
);

describe("exact JSON", () => {
  test("writes every int64 as it was read", () => {
    fc.assert(
      fc.property(int64, fc.constantFrom(0, 2), (n, indent) => {
        const text = `{"a":[${n}],"b":{"c":${n}}}`;
        const written = encodeJson(parseJson(text), indent);
        expect(written.replace(/\s/g, "")).toBe(text);
      }),
    );
  });

  test("tells two int64 apart by ===, and orders them", () => {
    fc.assert(
      fc.property(int64, int64, (one, other) => {
        const [a, b] = parseJson(`[${one},${other}]`) as [number | bigint, number | bigint];
        expect([a === b, a < b]).toEqual([one === other, one < other]);
      }),
    );
  });

  test("is JSON.parse and JSON.stringify for everything else", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text);
        expect(parseJson(text)).toEqual(value);
        expect(encodeJson(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  test("reads a number beyond int64 as a double, and refuses one beyond doubles", () => {
    expect(parseJson("[9223372036854775808,9007199254740993.0,1e22]")).toEqual([2 ** 63, 2 ** 53, 1e22]);
    for (const text of ["1e400", "-1E+400", "9".repeat(400)]) {
      expect(() => parseJson(`{"a":${text}}`)).toThrow(new UnreadableNumber(text));
    }
  });

  test("shows how a number is written that is not written as an int64", () => {
    expect(parseWritten(`{"a":1,"b":9007199254740993,"c":[ 1.0, 9223372036854775808]}`)).toEqual({
      a: 1,
      b: 9007199254740993n,
      c: [{ written: "1.0" }, { written: "9223372036854775808" }],
    });
    expect(parseWritten(`{"a":1,"b":"nginx:1.27","c":9007199254740993}`)).toBeUndefined();
  });
});
