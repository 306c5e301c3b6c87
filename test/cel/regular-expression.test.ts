import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, it } from "vitest";
import { EvaluationError, LimitExceeded, Meter } from "../../runtime/cel/meter.ts";
import { RegularExpression, sizeOf } from "../../runtime/cel/regular-expression.ts";

const units = (pattern: string, text: string): number => {
  const meter = new Meter(1e12);
  new RegularExpression(pattern).test(meter, text);
  return meter.used;
};

it("a pattern that backtracks costs as much again for twice the text", () => {
  const [once, twice] = [units("^(a+)+$", `${"a".repeat(500)}b`), units("^(a+)+$", `${"a".repeat(1000)}b`)];
  expect(twice).toBeLessThan(2.1 * once);
});

it("a search that would go over the limit is not begun", () => {
  const meter = new Meter(1_000_000);
  const before = process.cpuUsage();
  expect(() => new RegularExpression("[ab]*a[ab]{20}c").test(meter, "ab".repeat(5_000_000))).toThrow(LimitExceeded);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(50);
});

it("a pattern is never compiled to more than twice what is counted beforehand", () => {
  const atom = fc.constantFrom("a", ".", "[a-z]", "\\d", "\\pL", "(?:ab)", "[^]]", "\\.");
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 4 },
      atom,
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => a + b),
      fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `(${a}|${b})`),
      fc.tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{3}", "{2,5}", "{4,}")).map(([a, b]) => `(${a})${b}`),
    ),
  }));
  fc.assert(
    fc.property(pattern, (text) => {
      // The program has one extra instruction at its beginning, at its end, and for each `{n,}`.
      const most = 2 * sizeOf(text) + 3;
      expect(RE2JS.compile(text).programSize()).toBeLessThanOrEqual(most);
    }),
  );
});

it.each(["a{1001}", "(?:a{100}){100}", "(?=a)", "(", "a".repeat(1001)])("the pattern %.20s is refused", (pattern) => {
  expect(() => new RegularExpression(pattern)).toThrow(EvaluationError as unknown as ErrorConstructor);
});
