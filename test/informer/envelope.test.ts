import fc from "fast-check";
import { expect, test } from "vitest";
import { metadataIn } from "../../runtime/informer/scan/change.ts";
import { EnvelopeScanner, ObjectScanner } from "../../runtime/informer/scan/object-scan.ts";
import { damagedText, jsonText, misbracketedText, objectText } from "./json-text.ts";

type Fields = Record<string, unknown>;

const parse = (text: string): { value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
};
const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The line in a socket's chunk: with other bytes before it, and a newline and other bytes after it. */
function inChunk(text: string): { bytes: Buffer; start: number; end: number } {
  const before = Buffer.from('{"a":"');
  const line = Buffer.from(text);
  const bytes = Buffer.concat([before, line, Buffer.from('\n"}]')]);
  return { bytes, start: before.length, end: before.length + line.length };
}

test("the scanner takes what JSON.parse takes, and nothing else", () => {
  const scanner = new EnvelopeScanner();
  fc.assert(
    fc.property(fc.oneof(jsonText, damagedText, misbracketedText), (text) => {
      fc.pre(!text.includes("\n"));
      const { bytes, start, end } = inChunk(text);
      const parsed = parse(text);
      const object = parsed !== undefined && typeof parsed.value === "object" && parsed.value !== null;
      expect(scanner.scan(bytes, start, end)).toBe(object && !Array.isArray(parsed.value));
    }),
    { numRuns: 6000 },
  );
});

test.each([
  ...['{"a":[1}}', '{"a":{]}', '{"a":[{"b":1]}', '{"a":01}', '{"a":1.}', '{"a":-}', '{"a":1e}', '{"a":.5}', '{"a":+1}'],
  ...[
    '{"a":tru}',
    '{"a":nulll}',
    '{"a":falsy}',
    '{"a":"\\x"}',
    '{"a":"\\u12g4"}',
    '{"a":"\t"}',
    '{"a":1,}',
    "{,}",
    "{a:1}",
  ],
  ...[
    '{"a" 1}',
    '{"a":1 "b":2}',
    '{"a":1}}',
    '{"a":1} x',
    "[]",
    "1",
    "",
    "{",
    '{"a"',
    "\uFEFF{}",
    "{'a':1}",
    '{"a":undefined}',
  ],
])("%s is no line", (text) => {
  expect(parse(text) === undefined || ["[]", "1"].includes(text)).toBe(true);
  const { bytes, start, end } = inChunk(text);
  expect(new EnvelopeScanner().scan(bytes, start, end)).toBe(false);
});

test("the scanner finds the type and the object that JSON.parse finds", () => {
  const scanner = new EnvelopeScanner();
  const lines = fc.oneof(
    jsonText,
    fc.tuple(fc.constantFrom("ADDED", "MODIFIED", "ERROR", "x"), objectText).map(([type, object]) => {
      return `{"type":"${type}","object":${object}}`;
    }),
    fc
      .tuple(objectText, objectText)
      .map(([first, last]) => `{"object":${first},"obj\\u0065ct":${last},"type":"ADDED"}`),
  );
  fc.assert(
    fc.property(lines, (text) => {
      const { bytes, start, end } = inChunk(text);
      expect(scanner.scan(bytes, start, end)).toBe(true);
      const line = fieldsOf(JSON.parse(text));
      expect(scanner.type).toBe(textOf(line.type));
      const object = bytes.toString("utf8", scanner.object.start, scanner.object.end);
      if (object === "")
        expect(typeof line.object !== "object" || line.object === null || Array.isArray(line.object)).toBe(true);
      else expect(JSON.parse(object)).toEqual(line.object);
    }),
  );
});

test("an object's metadata is what JSON.parse finds, of doubled keys the last", () => {
  const scanner = new ObjectScanner();
  fc.assert(
    fc.property(objectText, (text) => {
      const { bytes, start, end } = inChunk(text);
      expect(scanner.scan(bytes, start, end)).toBe(true);
      const object = fieldsOf(JSON.parse(text));
      const metadata = fieldsOf(object.metadata);
      expect({ ...scanner.meta(), kind: scanner.kind, apiVersion: scanner.apiVersion }).toEqual({
        namespace: textOf(metadata.namespace),
        name: textOf(metadata.name),
        uid: textOf(metadata.uid),
        resourceVersion: textOf(metadata.resourceVersion),
        kind: textOf(object.kind),
        apiVersion: textOf(object.apiVersion),
      });
    }),
    { numRuns: 1000 },
  );
});

test("a body is the object without its managed fields", () => {
  const scanner = new ObjectScanner();
  fc.assert(
    fc.property(objectText, (text) => {
      const { bytes, start, end } = inChunk(text);
      scanner.scan(bytes, start, end);
      const expected = JSON.parse(text) as Fields;
      const metadata = fieldsOf(expected.metadata);
      delete metadata.managedFields;
      expect(JSON.parse(scanner.body(bytes, start, end).toString())).toEqual(expected);
    }),
    { numRuns: 1000 },
  );
});

test("a body says its kind and apiVersion where the object does not, or says another", () => {
  const scanner = new ObjectScanner();
  const identity = Buffer.from('"apiVersion":"v1","kind":"Pod",');
  fc.assert(
    fc.property(objectText, (text) => {
      const { bytes, start, end } = inChunk(text);
      scanner.scan(bytes, start, end);
      const expected = JSON.parse(text) as Fields;
      delete fieldsOf(expected.metadata).managedFields;
      const body = JSON.parse(scanner.body(bytes, start, end, identity).toString());
      expect(body).toEqual({ ...expected, apiVersion: "v1", kind: "Pod" });
    }),
    { numRuns: 1000 },
  );
});

test("an object's members lie in its body where they are said to, all of them", () => {
  const scanner = new ObjectScanner();
  let found = 0;
  fc.assert(
    fc.property(objectText, (text) => {
      const { bytes, start, end } = inChunk(text);
      scanner.scan(bytes, start, end);
      const body = scanner.body(bytes, start, end);
      const members = scanner.members(start);
      if (!members) return;
      found++;
      const texts: string[] = [];
      for (let at = 0; at < members.length; at += 4) {
        const [keyStart, keyEnd, valueStart, valueEnd] = members.slice(at, at + 4);
        texts.push(`"${body.toString("utf8", keyStart, keyEnd)}":${body.toString("utf8", valueStart, valueEnd)}`);
      }
      expect(JSON.parse(`{${texts.join()}}`)).toEqual(JSON.parse(body.toString()));
    }),
    { numRuns: 1000 },
  );
  expect(found).toBeGreaterThan(500);
});

test("an object's metadata is found in its body, or not at all", () => {
  const scanner = new ObjectScanner();
  let found = 0;
  fc.assert(
    fc.property(objectText, (text) => {
      const { bytes, start, end } = inChunk(text);
      scanner.scan(bytes, start, end);
      const body = scanner.body(bytes, start, end);
      const members = scanner.members(start);
      const span = members && metadataIn(members, body);
      if (!span) return;
      found++;
      const metadata = JSON.parse(body.toString("utf8", span.at, span.end));
      expect(metadata).toEqual((JSON.parse(body.toString()) as Fields).metadata);
    }),
    { numRuns: 1000 },
  );
  expect(found).toBeGreaterThan(200);
});

test("no byte of an object moves twice, however often its managed fields stand there", () => {
  const scanner = new ObjectScanner();
  const managed = Array.from(
    { length: 50 },
    (_, index) => `"managedFields":[${index}],"l${index}":"${"x".repeat(index)}"`,
  );
  const { bytes, start, end } = inChunk(`{"a":1,"metadata":{"name":"a",${managed.join()}}}`);
  let moved = 0;
  bytes.copyWithin = (to, from, until = bytes.length) => {
    moved += until - from;
    return Uint8Array.prototype.copyWithin.call(bytes, to, from, until) as typeof bytes;
  };
  expect(scanner.scan(bytes, start, end)).toBe(true);
  const body = scanner.body(bytes, start, end);
  expect(Object.keys((JSON.parse(body.toString()) as { metadata: object }).metadata)).toHaveLength(51);
  expect(moved).toBeLessThanOrEqual(body.length);
});

test("an object's metadata is not told where a later key spells it with escapes", () => {
  const scanner = new ObjectScanner();
  for (const [key, told] of [
    ["\\u006detadata", false],
    ["metad\\u0061t\\u0061", false],
    ["met\\tdata", true],
  ] as const) {
    const { bytes, start, end } = inChunk(`{"metadata":{"name":"a"},"${key}":{"name":"b"}}`);
    scanner.scan(bytes, start, end);
    const body = scanner.body(bytes, start, end);
    const span = metadataIn(scanner.members(start) ?? [], body);
    expect(span && body.toString("utf8", span.at, span.end)).toBe(told ? '{"name":"a"}' : undefined);
  }
});

test("a body of metadata alone is what a parser finds of it, without its managed fields", () => {
  const scanner = new ObjectScanner();
  const identity = Buffer.from('"apiVersion":"v1","kind":"Pod",');
  fc.assert(
    fc.property(objectText, (text) => {
      const { bytes, start, end } = inChunk(text);
      scanner.scan(bytes, start, end);
      const { metadata } = JSON.parse(text) as Fields;
      delete fieldsOf(metadata).managedFields;
      const body = JSON.parse(scanner.metadataBody(bytes, identity).toString());
      expect(body).toEqual({ apiVersion: "v1", kind: "Pod", metadata });
    }),
    { numRuns: 1000 },
  );
});

test("a body is a view of what was received, not a copy", () => {
  const scanner = new ObjectScanner();
  for (const text of ['{"metadata":{"name":"a"}}', '{"metadata":{"managedFields":[{}],"name":"a"}}']) {
    const { bytes, start, end } = inChunk(text);
    scanner.scan(bytes, start, end);
    const body = scanner.body(bytes, start, end);
    expect(body.toString()).toBe('{"metadata":{"name":"a"}}');
    expect(body.buffer).toBe(bytes.buffer);
  }
});

test("of an object that stands twice in a line nothing of the first is left", () => {
  const object = '{"kind":"Pod","metadata":{"name":"a","managedFields":[]},"spec":{}}';
  const first =
    '{"kind":"Node","apiVersion":"v1","metadata":{"uid":"u","managedFields":[1],"managedFields":[2]},"a":1}';
  const [once, twice] = [`{"object":${object}}`, `{"object":${first},"object":${object}}`].map((text) => {
    const scanner = new EnvelopeScanner();
    const { bytes, start, end } = inChunk(text);
    expect(scanner.scan(bytes, start, end)).toBe(true);
    const { object: found } = scanner;
    const said = [found.meta(), found.kind, found.apiVersion, found.members(found.start)];
    return [...said, found.body(bytes, found.start, found.end).toString()];
  });
  expect(twice).toEqual(once);
});

test("however often an object says its kind, or its managed fields, its body says them once or not at all", () => {
  const scanner = new ObjectScanner();
  const doubled = (member: string) => Array.from({ length: 20_000 }, () => member).join();
  const text = `{${doubled('"kind":0')},"metadata":{${doubled('"managedFields":[]')},"name":"a"}}`;
  const { bytes, start, end } = inChunk(text);
  expect(scanner.scan(bytes, start, end)).toBe(true);
  const body = scanner.body(bytes, start, end, Buffer.from('"kind":"Pod",'));
  expect(body.toString()).toBe('{"kind":"Pod","metadata":{"name":"a"}}');
});

test("an object of more members than are kept has none, and the next one has its own", () => {
  const scanner = new ObjectScanner();
  const membersOf = (count: number) => {
    const text = `{${Array.from({ length: count }, (_, index) => `"k${index}":${index}`).join()}}`;
    expect(scanner.scan(Buffer.from(text), 0, text.length)).toBe(true);
    const members = scanner.members(0);
    const [keyStart, keyEnd, valueStart, valueEnd] = members?.slice(-4) ?? [];
    if (members)
      expect([text.slice(keyStart, keyEnd), text.slice(valueStart, valueEnd)]).toEqual([
        `k${count - 1}`,
        `${count - 1}`,
      ]);
    return members?.length;
  };
  expect([16, 17, 1000, 2].map(membersOf)).toEqual([64, undefined, undefined, 8]);
});

test("what was found of one object stays while others are scanned", () => {
  const [one, other] = [new ObjectScanner(), new ObjectScanner()];
  const first = '{"kind":"Pod","metadata":{"managedFields":[{}],"name":"a"},"spec":{}}';
  const bytes = Buffer.from(first);
  one.scan(bytes, 0, bytes.length);
  const [meta, members] = [one.meta(), one.members(0)];
  const second = Buffer.from('{"a":1,"metadata":{"name":"b","managedFields":{"b":2}},"kind":"ConfigMap"}');
  other.scan(second, 0, second.length);
  expect([one.meta(), one.members(0), one.kind]).toEqual([meta, members, "Pod"]);
  expect(one.body(bytes, 0, bytes.length).toString()).toBe('{"kind":"Pod","metadata":{"name":"a"},"spec":{}}');
});

test("what stands around an object is as it was once its body is taken", () => {
  const scanner = new ObjectScanner();
  fc.assert(
    fc.property(objectText, (text) => {
      const { bytes, start, end } = inChunk(text);
      const around = () => [bytes.toString("latin1", 0, start), bytes.toString("latin1", end)];
      const before = around();
      scanner.scan(bytes, start, end);
      scanner.body(bytes, start, end);
      expect(around()).toEqual(before);
    }),
  );
});

test("nesting beyond what an API server takes is refused, not followed", () => {
  const deep = (levels: number) => `{"object":${"[".repeat(levels)}0${"]".repeat(levels)}}`;
  const scanner = new EnvelopeScanner();
  const scan = (text: string) => scanner.scan(Buffer.from(`${text}\n`), 0, text.length);
  expect(scan(deep(10_000))).toBe(true);
  expect(scan(deep(10_001))).toBe(false);
});
