import type { Library } from "./library.ts";
import type { Meter } from "./meter.ts";
import { RegularExpression } from "./regular-expression.ts";

/** Cache of computed patterns, so that a pattern in a loop is compiled once. */
const kept = new Map<string, RegularExpression>();
const mostKept = 32;

function compiled(meter: Meter, pattern: string | RegularExpression): RegularExpression {
  if (pattern instanceof RegularExpression) return pattern;
  let made = kept.get(pattern);
  if (!made) {
    made = new RegularExpression(pattern, meter);
    if (kept.size >= mostKept) kept.delete(kept.keys().next().value ?? "");
    kept.set(pattern, made);
  }
  return made;
}

type Pattern = string | RegularExpression;

/** `matches` of CEL, and `find` and `findAll` of Kubernetes. A constant pattern is passed as a RegularExpression. */
export const regex: Library = {
  functions: [
    [
      "string.matches(string): bool",
      (meter, text: string, pattern: Pattern) => compiled(meter, pattern).test(meter, text),
    ],
    [
      "matches(string, string): bool",
      (meter, text: string, pattern: Pattern) => compiled(meter, pattern).test(meter, text),
    ],
    [
      "string.find(string): string",
      (meter, text: string, pattern: Pattern) => compiled(meter, pattern).find(meter, text, 1)[0] ?? "",
    ],
    [
      "string.findAll(string): list<string>",
      (meter, text: string, pattern: Pattern) => compiled(meter, pattern).find(meter, text, -1),
    ],
    [
      "string.findAll(string, int): list<string>",
      (meter, text: string, pattern: Pattern, limit: number) =>
        compiled(meter, pattern).find(meter, text, Number(limit)),
    ],
  ],
};

/** Functions whose last string argument is a pattern. A constant pattern is compiled with the expression. */
export const takesPattern: ReadonlySet<string> = new Set(["matches", "find", "findAll"]);
