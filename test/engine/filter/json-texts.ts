import fc from "fast-check";

const { value } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom("1", "-2.50e3", "12345678901234567890", "12345678901234567891", "null", "true", '"x"', '"\\u0061"'),
    tie("object"),
    tie("array"),
  ),
  object: fc
    .array(fc.tuple(fc.constantFrom('"a"', '"b"', '"ü"', '"\\u0061"', '"0"', '""', '"__proto__"'), tie("value")), {
      maxLength: 4,
    })
    .map((members) => `{ ${members.map(([key, member]) => `${key} : ${member}`).join(" ,\n")} }`),
  array: fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
}));

/**
 * JSON as servers may write it: in any order, with duplicate keys, with and without escapes, with white space. Keys are a, b, ü,
 * 0, __proto__ and "".
 */
export const jsonTexts: fc.Arbitrary<string> = value;
