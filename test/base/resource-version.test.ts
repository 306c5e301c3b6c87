import fc from "fast-check";
import { expect, test } from "vitest";
import {
  byAge,
  isNewer,
  isOrdered,
  isUpTo,
  newerOf,
  predecessor,
  type ResourceVersion,
  resourceVersion,
} from "../../runtime/base/resource-version.ts";

const number = fc.bigInt({ min: 1n, max: 2n ** 128n - 1n });
const of = (value: bigint): ResourceVersion => resourceVersion(String(value));

test("resourceVersions order as the numbers they are, up to 128 bits", () => {
  fc.assert(
    fc.property(number, number, (a, b) => {
      expect(isNewer(of(a), of(b))).toBe(a > b);
      expect(isUpTo(of(a), of(b))).toBe(a <= b);
      expect(Math.sign(byAge(of(a), of(b)))).toBe(a < b ? -1 : a > b ? 1 : 0);
      expect(newerOf(of(a), of(b))).toBe(of(a > b ? a : b));
      expect(predecessor(of(a))).toBe(of(a - 1n));
    }),
  );
});

test.each(["0", "007", "-1", "1.5", "1e3", "abc", "12a", "１２"])("%j has no order, only equality", (text) => {
  const [opaque, twelve] = [resourceVersion(text), resourceVersion("12")];
  expect(isOrdered(opaque)).toBe(false);
  expect(isUpTo(opaque, opaque)).toBe(true);
  for (const [a, b] of [
    [opaque, twelve],
    [twelve, opaque],
  ] as const) {
    expect(isNewer(a, b)).toBe(false);
    expect(isUpTo(a, b)).toBe(false);
    expect(byAge(a, b)).toBe(0);
    expect(newerOf(a, b)).toBe(b);
  }
  expect(predecessor(opaque)).toBeUndefined();
});
