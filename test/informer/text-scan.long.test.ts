import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { compiledFile, compiledModule } from "../../deploy/scanner/compile.ts";
import { scanText, usualText } from "../../runtime/informer/scan/text-scan.ts";
import * as layout from "../../runtime/informer/scan/wasm/layout.ts";
import { damagedText, jsonText, misbracketedText } from "./json-text.ts";

/** The result of JSON.parse, if it is an object. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Surrounded by other bytes, which would end the value if they were read. */
function scanned(text: string, what: "event" | "object" = "object"): Int32Array | undefined {
  const [before, line] = [Buffer.from('{"a":"'), Buffer.from(text)];
  const bytes = Buffer.concat([before, line, Buffer.from('"}]}'.repeat(8))]);
  return scanText(bytes, before.length, before.length + line.length, what);
}

const takes = (text: string) => scanned(text) !== undefined && scanned(text, "event") !== undefined;

/** Shifts the text over all positions of a 16-byte step, twice. */
const shifts = Array.from({ length: 33 }, (_, length) => length);

function expectVerdictOfParser(text: string): void {
  const verdict = parsed(text) !== undefined;
  if (takes(text) !== verdict) expect(`${verdict ? "refused" : "taken"}: ${text}`).toBe("as JSON.parse does");
}

test("the module that is checked in is what its sources compile to", () => {
  expect(readFileSync(compiledFile, "utf8")).toBe(compiledModule());
});

test("text is taken where JSON.parse takes it, wherever in a step of sixteen bytes it stands", () => {
  const values = [
    ...["1", "-1", "0", "-0", "01", "-01", "1.", ".5", "1.5", "-", "+1", "1e5", "1E+10", "1e", "1e+", "1.e5", "0x1"],
    ...["true", "false", "null", "tru", "truf", "fals", "falsy", "nul", "nulll", "True", "NaN", "undefined"],
    ...['""', '"', '"a', '"\\"', '"\\\\"', '"\\x"', '"\\u12aF"', '"\\u12g4"', '"\\u123"', '"\\u"', '"\\', "'a'"],
    ...['"\t"', '"\u0000"', '"\u001f"', '"\u007f"', '"\u0080"', '"ü€😀"', '"\u2028"', '"\\/\\b\\f\\n\\r\\t"', '"\\v"'],
    ...[
      "[]",
      "[1]",
      "[1,]",
      "[,]",
      "[1 2]",
      "[1,2",
      "]",
      "[}",
      "[[]]",
      "[[]",
      "{}",
      "{]",
      '{"a":1,}',
      '{"a"}',
      "{1:1}",
    ],
    ...['{"a":1}', '{"a" : 1 }', '{"a":1 "b":2}', '{"a"::1}', '{"a":}', "{,}", "\u00a0", "\uFEFF1", "\u000b1", "", " "],
  ];
  for (const shift of shifts) {
    const space = " ".repeat(shift);
    const text = "x".repeat(shift);
    for (const value of values) {
      for (const whole of [`${space}{"a":${value}}`, `{"${text}":${value}}`, `{"a":["${text}",${value}]}`])
        expectVerdictOfParser(whole);
      for (const after of [" ", "\n\r\t", "x", "}", "\u0000", "{}"]) expectVerdictOfParser(`{"a":${value}}${after}`);
    }
  }
});

test("a string is judged by each of its characters, of any length and at any place", () => {
  const odd = ['\\"', "\\\\", "\\u0061", "\\u00", "\\q", '"', "\u0001", "\u001f", "ü", "\u007f", "\\"];
  for (let length = 0; length < 50; length++) {
    for (let at = 0; at <= length; at++) {
      for (const piece of odd) {
        const text = "x".repeat(at) + piece + "x".repeat(length - at);
        expectVerdictOfParser(`{"${text}":"${text}"}`);
      }
    }
  }
});

test("text is taken where JSON.parse takes it, at random", () => {
  fc.assert(
    fc.property(fc.oneof(jsonText, damagedText, misbracketedText), fc.nat(32), (text, shift) => {
      expectVerdictOfParser(" ".repeat(shift) + text);
    }),
    { numRuns: 6000 },
  );
});

test("bytes beyond the end are none of the text, those of a longer text before included", () => {
  const text = '{"a":[{"b":"c\\"d"},-12.5e3,true,null],"e":{"f":"\\u00e4"}}  ';
  const bytes = Buffer.from(`${text}}]"}`);
  const taken = Array.from({ length: text.length + 1 }, (_, length) => length).filter((length) => {
    expect(scanText(bytes, 0, text.length, "object")).toBeDefined();
    return scanText(bytes, 0, length, "object");
  });
  expect(taken).toEqual([text.length - 2, text.length - 1, text.length]);
});

const names: Readonly<Record<string, number>> = {
  name: layout.nameField,
  namespace: layout.namespaceField,
  uid: layout.uidField,
  resourceVersion: layout.resourceVersionField,
  annotations: layout.annotationsField,
  managedFields: layout.managedFieldsField,
};

/** The text of a field with its form; `undefined` if the field is absent. */
function fieldOf(found: Int32Array, field: number, bytes: Buffer) {
  const [start, end, form] = found.subarray(layout.slots + field * layout.slotWords);
  return { text: end === 0 ? undefined : bytes.toString("utf8", start, end), form };
}

/** Checks that the field has the parser's value, from its first byte to its last, and its form. */
function expectField(found: Int32Array, field: number, bytes: Buffer, expected: unknown): void {
  const { text, form } = fieldOf(found, field, bytes);
  expect(text === undefined ? undefined : JSON.parse(text)).toEqual(expected);
  expect(text).toBe(text?.trim());
  if (typeof expected !== "string") expect(form).toBe(layout.noString);
  else
    expect(form).toBe(
      text === `"${expected}"` && /^[ -~\u007f]*$/.test(expected) ? layout.plainString : layout.codedString,
    );
}

const own = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

test("each field is where JSON.parse finds it, whichever way its key is spelled, of doubled ones the last", () => {
  const key = fc
    .tuple(fc.constantFrom("type", "object", "kind", "apiVersion", "metadata", ...Object.keys(names)), fc.nat(40))
    .map(([name, at]) => {
      const code = name.charCodeAt(at);
      return at < name.length ? `${name.slice(0, at)}\\u00${code.toString(16)}${name.slice(at + 1)}` : name;
    });
  const members = (value: fc.Arbitrary<string>) =>
    fc
      .array(fc.tuple(key, value), { maxLength: 8 })
      .map((all) => `{${all.map(([name, text]) => `"${name}" :\t${text} `).join(",")}}`);
  const text = fc.oneof(
    fc.string({ maxLength: 40 }).map((value) => JSON.stringify(value)),
    fc.constantFrom("1", "[]"),
  );
  const lines = members(fc.oneof(members(fc.oneof(members(text), text)), text));
  fc.assert(
    fc.property(lines, (line) => {
      const bytes = Buffer.from(`..${line}..`);
      const whole: unknown = JSON.parse(line);
      const expectObject = (found: Int32Array, object: unknown) => {
        expectField(found, layout.kindField, bytes, own(object, "kind"));
        expectField(found, layout.apiVersionField, bytes, own(object, "apiVersion"));
        const metadata = own(object, "metadata");
        expectField(found, layout.metadataField, bytes, metadata);
        for (const [name, field] of Object.entries(names)) expectField(found, field, bytes, own(metadata, name));
      };
      const end = bytes.length - 2;
      const asEvent = scanText(bytes, 2, end, "event") ?? expect.fail("not taken");
      expectField(asEvent, layout.typeField, bytes, own(whole, "type"));
      expectField(asEvent, layout.objectField, bytes, own(whole, "object"));
      expectObject(asEvent, own(whole, "object"));
      const asObject = scanText(bytes, 2, end, "object") ?? expect.fail("not taken");
      expectField(asObject, layout.objectField, bytes, whole);
      expectObject(asObject, whole);
    }),
    { numRuns: 3000 },
  );
});

test("a string is plain where each of its bytes is a character, so that a byte that is none shows", () => {
  for (let length = 1; length < 50; length++) {
    for (let at = 0; at < length; at++) {
      const bytes = Buffer.from(`{"kind":"${"x".repeat(length)}","ü":"\\\\"}`);
      const formOf = () =>
        fieldOf(scanText(bytes, 0, bytes.length, "object") ?? expect.fail("not taken"), layout.kindField, bytes).form;
      expect(formOf()).toBe(layout.plainString);
      bytes[9 + at] = 0x80;
      expect(formOf()).toBe(layout.codedString);
    }
  }
});

test("a text is scanned alike below and above the usual length, up to the longest line", () => {
  for (const length of [usualText - 1, usualText, usualText + 1, 16 * 1024 * 1024]) {
    const around = '{"metadata":{"name":"a"},"x":""}'.length;
    const text = `{"metadata":{"name":"a"},"x":"${"y".repeat(length - around)}"}`;
    const bytes = Buffer.from(text);
    const found = scanText(bytes, 0, length, "object") ?? expect.fail("not taken");
    expect(fieldOf(found, layout.nameField, bytes).text).toBe('"a"');
    expect(fieldOf(found, layout.objectField, bytes).text?.length).toBe(length);
    bytes[length - 3] = 0x01;
    expect(scanText(bytes, 0, length, "object")).toBeUndefined();
    const kinds = `{"kind":0${',"kind":0'.repeat((length - 10) / 9)}}`;
    const all = scanText(Buffer.from(kinds), 0, kinds.length, "object") ?? expect.fail("not taken");
    expect(all[layout.cutCount]).toBe((kinds.length - 1) / 9);
  }
});
