import { expect, test } from "vitest";
import { checkExpression } from "../../../runtime/engine/filter/check-expression.ts";

test.each([
  ['object.metadata.name.startWith("a")', /calls startWith, which is not a function: did you mean startsWith\?$/],
  [
    'objekt.metadata.name == "a"',
    /unknown variable: objekt .*; an expression has object and oldObject: did you mean object\?$/,
  ],
  ["oldObjct == object", /did you mean oldObject\?$/],
  ["object.a.exists(x, y == 1)", /unknown variable: y .*; an expression has object and oldObject$/],
  ['object.a = "b"', /unexpected character: = .*; the operator is ==$/],
  ["object.a & object.b", /unexpected character: & .*; the operator is &&$/],
])("%s is refused with what to write instead", (expression, said) => {
  expect(checkExpression(expression)).toMatch(said);
});

test("arguments of a function that exists are refused in the parser's words", () => {
  expect(checkExpression("size(object.a, 1) == 1")).toMatch(
    /no matching overload for 'size\(dyn, int\)' at character 1$/,
  );
});
