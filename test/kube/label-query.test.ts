import fc from "fast-check";
import { expect, it } from "vitest";
import { labelQuery } from "../../runtime/kube/label-query.ts";
import { matchesLabels } from "../../sdk/testing/selectors.ts";

const key = fc.constantFrom("app", "tier", "example.com/role");
const value = fc.constantFrom("a", "b", "");
const values = fc.array(value, { minLength: 1, maxLength: 3 });
const term = fc.oneof(
  fc.tuple(key, fc.constantFrom("=", "==", "!=", " = ", " != "), value).map((parts) => parts.join("")),
  fc
    .tuple(key, fc.constantFrom("in", "notin"), values)
    .map(([of, operator, list]) => `${of} ${operator} (${list.join(",")})`),
  fc.tuple(fc.constantFrom("", "!"), key).map((parts) => parts.join("")),
);

it("a selector chooses as the memory cluster of the SDK does", () => {
  fc.assert(
    fc.property(fc.array(term, { maxLength: 4 }), fc.dictionary(key, value), (terms, labels) => {
      const selector = terms.join(",");
      expect(labelQuery(selector)(labels)).toBe(matchesLabels(selector, labels));
    }),
  );
});

it.each(["=", "a=b=c", "a in", "a in b", "a in (b", "a,,b", "!", "a b", "a>1", "a=b c", "-a", "a=x_", "a in (b))"])(
  "%s is refused, with a code and what to write",
  (selector) => {
    expect(() => labelQuery(selector)).toThrow(/^WF_READS_SELECTOR: .*app=web/);
  },
);

it("an object's own properties alone are labels", () => {
  expect(labelQuery("constructor")({})).toBe(false);
});
