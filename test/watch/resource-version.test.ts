import fc from "fast-check";
import { expect, test } from "vitest";
import { compareResourceVersions, isOrdered, newerResourceVersion } from "../../runtime/watch/resource-version.ts";

const version = fc.bigInt({ min: 1n, max: 2n ** 128n - 1n });

test("resourceVersions order as the numbers they are, up to 128 bits", () => {
  fc.assert(
    fc.property(version, version, (a, b) => {
      const order = compareResourceVersions(String(a), String(b));
      expect(Math.sign(order ?? Number.NaN)).toBe(a < b ? -1 : a > b ? 1 : 0);
      expect(newerResourceVersion(String(a), String(b))).toBe(String(a > b ? a : b));
    }),
  );
});

test.each(["", "0", "007", "-1", "1.5", "1e3", "abc", "12a", "１２"])("%j has no order, only equality", (text) => {
  expect(isOrdered(text)).toBe(false);
  expect(compareResourceVersions(text, text)).toBe(0);
  expect(compareResourceVersions(text, "12")).toBeUndefined();
});
