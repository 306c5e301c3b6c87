import fc from "fast-check";

/** One character of a string, in any of its JSON spellings. */
const spelled = fc
  .tuple(fc.string({ unit: "grapheme", maxLength: 8 }), fc.nat(3))
  .map(([text, way]) =>
    way === 0
      ? [...text].map((char) => [...Array(char.length).keys()].map((at) => unicodeEscape(char, at)).join("")).join("")
      : JSON.stringify(text).slice(1, -1),
  )
  .map((inner) => `"${inner}"`);

const unicodeEscape = (text: string, at: number) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`;

const space = fc.constantFrom("", "", "", " ", "\t", " \r ", "  ");
const number = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom("-0", "0.5", "1e5", "1E+10", "-1.25e-3"),
);
const key = fc.oneof(
  fc.constantFrom(
    ...["type", "object", "metadata", "name", "namespace", "uid", "resourceVersion"].map((name) => `"${name}"`),
    ...['"managedFields"', '"kind"', '"apiVersion"', '"annotations"', '"n\\u0061me"', '"managed\\u0046ields"'],
  ),
  spelled,
);

/** JSON text of any shape, with white space, escapes, duplicate keys and the keys that the scanner searches for. */
export const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom("true", "false", "null"),
    number,
    spelled,
    tie("array"),
    tie("object"),
  ),
  array: fc
    .array(fc.tuple(space, tie("value"), space), { maxLength: 4 })
    .map((items) => `[${items.map((parts) => parts.join("")).join(",")}]`),
  object: fc
    .array(fc.tuple(space, key, space, space, tie("value"), space), { maxLength: 6 })
    .map((members) => `{${members.map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`).join(",")}}`),
})).object;

/** A Kubernetes object's text with its members in any order, some of them duplicated. */
export const objectText: fc.Arbitrary<string> = fc
  .record({
    metadata: fc.array(
      fc.tuple(
        fc.constantFrom('"name"', '"namespace"', '"uid"', '"resourceVersion"', '"managedFields"', '"labels"'),
        fc.oneof(spelled, jsonText, fc.constant('[{"manager":"kubectl","fieldsV1":{"f:data":{}}}]')),
      ),
      { maxLength: 8 },
    ),
    before: fc.array(fc.tuple(key, jsonText), { maxLength: 2 }),
    after: fc.array(fc.tuple(fc.constantFrom('"kind"', '"apiVersion"', '"data"'), spelled), { maxLength: 3 }),
  })
  .map(({ metadata, before, after }) => {
    const text = (members: (readonly [string, string])[]) =>
      members.map(([name, value]) => `${name}:${value}`).join(",");
    return `{${text([...before, ['"metadata"', `{${text(metadata)}}`], ...after])}}`;
  });

/** Text with one bracket, comma, colon or quote replaced by another, which mostly makes it invalid. */
export const misbracketedText: fc.Arbitrary<string> = fc
  .tuple(jsonText, fc.nat(), fc.constantFrom("{", "}", "[", "]", '"', ",", ":"))
  .map(([text, pick, piece]) => {
    const places = [...text.matchAll(/[{}[\]",:]/g)].map((match) => match.index);
    const place = places[pick % places.length] ?? 0;
    return text.slice(0, place) + piece + text.slice(place + 1);
  });

/** Text with one byte changed, removed or added, which mostly makes it invalid. */
export const damagedText: fc.Arbitrary<string> = fc
  .tuple(
    jsonText,
    fc.nat(),
    fc.constantFrom("", "{", "}", "[", "]", '"', "\\", ",", ":", "0", "e", "-", "x", "\t", "\u0001"),
  )
  .map(([text, at, piece]) => {
    const index = at % (text.length + 1);
    return text.slice(0, index) + piece + text.slice(index + (at % 2));
  });
