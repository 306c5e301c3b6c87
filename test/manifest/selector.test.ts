import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fieldQuery, type LabelSelector, labelQuery } from "../../runtime/manifest/selector.ts";

const key = fc.constantFrom("app", "tier", "example.com/role");
const value = fc.constantFrom("", "a", "b", "c");
const selectors = fc.record({
  matchLabels: fc.dictionary(key, value),
  matchExpressions: fc.array(
    fc.oneof(
      fc.record({
        key,
        operator: fc.constantFrom("In", "NotIn"),
        values: fc.array(value, { minLength: 1 }),
      }),
      fc.record({ key, operator: fc.constantFrom("Exists", "DoesNotExist") }),
    ),
  ),
});

describe("a label selector's query", () => {
  it("is the same text however the selector is ordered", () => {
    fc.assert(
      fc.property(selectors, (selector: LabelSelector) => {
        const reversed = {
          matchLabels: Object.fromEntries(Object.entries(selector.matchLabels ?? {}).reverse()),
          matchExpressions: [...(selector.matchExpressions ?? [])]
            .reverse()
            .map((expression) =>
              expression.values ? { ...expression, values: [...expression.values].reverse() } : expression,
            ),
        };
        expect(labelQuery(reversed)).toBe(labelQuery(selector));
      }),
    );
  });

  it("says each operator as the API does", () => {
    expect(
      labelQuery({
        matchLabels: { app: "web" },
        matchExpressions: [
          { key: "b", operator: "In", values: ["y", "x", "y"] },
          { key: "c", operator: "NotIn", values: ["z"] },
          { key: "d", operator: "Exists" },
          { key: "e", operator: "DoesNotExist" },
        ],
      }),
    ).toBe("app=web,b in (x,y),c!=z,d,!e");
  });
});

describe("a field selector", () => {
  it.each([
    ["metadata.name=a", "metadata.name=a"],
    ["status.phase!=Running, metadata.name==a", "metadata.name=a,status.phase!=Running"],
    ["", ""],
    [String.raw`spec.x=a\,b\=c`, String.raw`spec.x=a\,b\=c`],
  ])("%j is read as %j", (text, query) => {
    expect(fieldQuery(text)).toBe(query);
  });

  it.each(["metadata.name", "=a", "a=b=c", "a=b\\", "a>b", "a=\\x"])("%j is refused", (text) => {
    expect(fieldQuery(text)).toBeUndefined();
  });
});
