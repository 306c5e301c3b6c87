import fc from "fast-check";
import { expect, test } from "vitest";
import { fieldTerms } from "../../runtime/cluster/api/field-terms.ts";
import { escapedValue, requiredName } from "../../runtime/kube/field-selector.ts";

const name = fc.stringMatching(/^[a-c ,=\\!]{1,4}$/);

test("the name that a selector asks for is its own, whatever stands beside it, and none where no equation names one", () => {
  const other = fc.record({ field: fc.constantFrom("metadata.name!=", "metadata.namespace=", "x!="), value: name });
  fc.assert(
    fc.property(name, fc.array(other), fc.constantFrom("=", "=="), fc.nat(), (wanted, others, sign, at) => {
      const terms = others.map(({ field, value }) => field + escapedValue(value));
      expect(requiredName(terms.join())).toBeUndefined();
      terms.splice(at % (terms.length + 1), 0, `metadata.name${sign}${escapedValue(wanted)}`);
      expect(requiredName(terms.join())).toBe(wanted);
    }),
  );
});

test("of any text a name is asked for only where each object that it selects has that name", () => {
  const piece = fc.constantFrom("metadata.name", "=", "==", "!=", ",", "\\", "a", "b", " ", "x.y");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
      const selector = pieces.join("");
      const wanted = requiredName(selector);
      if (wanted === undefined) return;
      expect(fieldTerms(selector)).toContainEqual({ label: "metadata.name", value: wanted, equal: true });
    }),
    { numRuns: 2000 },
  );
});
