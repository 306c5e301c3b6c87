import fc from "fast-check";
import { expect, test } from "vitest";
import { nameFaults } from "../../runtime/cluster/kinds/names.ts";
import { apiVersion, kind } from "../../runtime/kube/names.ts";

const isLabel = (text: string): boolean => nameFaults("label1035", text).length === 0;
const label = fc.oneof(
  fc.stringMatching(/^[a-z0-9-]{0,4}$/),
  fc.integer({ min: 60, max: 66 }).map((n) => "x".repeat(n)),
);
const subdomain = fc.stringMatching(/^[a-z0-9]{1,3}(?:\.[a-z0-9]{1,3}){1,3}$/);

test("an API version is taken where the API server takes it of a definition", () => {
  fc.assert(
    fc.property(subdomain, label, (group, version) => {
      expect(apiVersion.test(`${group}/${version}`)).toBe(isLabel(version));
    }),
  );
});

test("a kind is taken where the API server takes it of a definition", () => {
  const mixed = fc.oneof(fc.stringMatching(/^[A-Za-z0-9.-]{0,4}$/), label);
  fc.assert(
    fc.property(mixed, (text) => {
      expect(kind.test(text)).toBe(isLabel(text.toLowerCase()));
    }),
  );
});

test.each([
  "v1/..",
  "a/../v1",
  "../v1",
  "a/v1/b",
  "a b/v1",
  "a/v1?x",
  "a/v1#",
  "a%2fb/v1",
  "/v1",
  "a/",
  "..",
  "apps",
  "stable",
])("what would become another path, or is a group or a version alone, is no API version: %s", (text) =>
  expect(apiVersion.test(text)).toBe(false),
);
