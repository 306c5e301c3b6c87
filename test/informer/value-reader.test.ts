import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EnvelopeScanner } from "../../runtime/informer/scan/object-scan.ts";
import { NotJson, OversizeValue, ValueReader } from "../../runtime/informer/scan/value-reader.ts";
import { damagedText, jsonText } from "./json-text.ts";
import { splitAnywhere } from "./split.ts";

function newReader(limit?: number): ValueReader {
  const scanner = new EnvelopeScanner();
  return new ValueReader((bytes, start, end) => scanner.scan(bytes, start, end), limit);
}

function read(chunks: readonly Buffer[], reader = newReader()): string[] {
  const values: string[] = [];
  for (const chunk of chunks) {
    reader.push(chunk, (bytes, start, end) => {
      values.push(bytes.toString("utf8", start, end).trim());
      return true;
    });
  }
  return values;
}

const reading = (...pieces: string[]) => read(pieces.map((piece) => Buffer.from(piece)));

/** All of JSON's white space, in the line ends that servers and proxies use; may be empty. */
const space = fc
  .array(fc.constantFrom("", "\n", "\n", "\r\n", " ", "\t", "\n\n", "\r"), { maxLength: 4 })
  .map((parts) => parts.join(""));

/** A value written on one line, or pretty-printed over several. */
const written = fc
  .tuple(jsonText, fc.constantFrom(undefined, undefined, 2, "\t"))
  .map(([text, indent]) => (indent === undefined ? text : JSON.stringify(JSON.parse(text), null, indent)));

test("the values are the same whatever white space is between them, and however the bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(written, space)),
      space,
      fc.array(fc.nat(), { maxLength: 12 }),
      (parts, before, cuts) => {
        const bytes = Buffer.from(before + parts.map(([text, after]) => text + after).join(""));
        const reader = newReader();
        expect(read(splitAnywhere(bytes, cuts), reader)).toEqual(
          parts.map(([text]) => Buffer.from(text).toString().trim()),
        );
        expect(reader.pending).toBe(0);
      },
    ),
  );
});

test("of a stream of lines that ends anywhere all is handed out but the value that was cut off", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(written, space), { minLength: 1 }), fc.nat(), (parts, cut) => {
      const bytes = Buffer.from(parts.map(([text, after]) => `${text}${after}\n`).join(""));
      const length = cut % (bytes.length + 1);
      let end = 0;
      const whole = parts.filter(([text, after]) => {
        const isWhole = end + Buffer.byteLength(text) <= length;
        end += Buffer.byteLength(`${text}${after}\n`);
        return isWhole;
      });
      expect(read([bytes.subarray(0, length)])).toEqual(whole.map(([text]) => Buffer.from(text).toString()));
    }),
  );
});

test("damaged text is handed out only where JSON.parse would take it, however the bytes are cut", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(damagedText, space)), fc.array(fc.nat(), { maxLength: 12 }), (parts, cuts) => {
      const bytes = Buffer.from(parts.map(([text, after]) => text + after).join(""));
      const values: string[] = [];
      const reader = newReader();
      try {
        for (const chunk of splitAnywhere(bytes, cuts)) values.push(...read([chunk], reader));
      } catch (error) {
        expect(error).toBeInstanceOf(NotJson);
      }
      for (const value of values) expect(typeof JSON.parse(value)).toBe("object");
    }),
  );
});

describe("a value is handed out as soon as it is whole", () => {
  test.each([
    ["its line ends", ['{"a":1}\n']],
    ["its last brace is there, and no line break", ['{"a":1}']],
    ["its last brace comes in a piece of its own", ['{"a":{"b":1', "}", "}"]],
    ["white space follows its last brace", ['{"a":1} \t']],
  ])("when %s", (_when, pieces) => {
    expect(reading(...pieces)).toEqual([pieces.join("").trim()]);
  });
});

describe("what is not JSON is found as soon as it shows", () => {
  test.each([
    ["text", ["upstream connect error\n"]],
    ["text without a line break", ['{"a":1}\nupstream connect error']],
    ["a byte order mark, which Go's decoder refuses as well", ['\ufeff{"a":1}\n']],
    ["an array", ["[1]\n"]],
    ["a value that is cut off, once another follows", ['{"a":{"b":1}\n', '{"a":1}\n']],
    ["a value that is cut off after a comma", ['{"a":1,\n{"a":1}\n']],
    ["a value that is cut off in a string", ['{"a":"b\n']],
    ["a bracket that closes another", ['{"a":[1}\n']],
    ["a comma between values", ['{"a":1},{"b":1}\n']],
    ["a word that JSON does not have", ['{\n"a":nul}\n']],
    ["a control character", ['{"a"\u0001:1\n']],
  ])("%s", (_what, pieces) => {
    expect(() => reading(...pieces)).toThrow(NotJson);
  });

  test("an object nested deeper than API servers allow", () => {
    expect(() => reading(`{\n"a":${"[".repeat(10_001)}`)).toThrow(NotJson);
  });
});

test("a value that spans chunks lies in memory of its own, and one within a chunk in that", () => {
  const reader = newReader();
  const chunks = [Buffer.from('{"whole":1}\n{"first'), Buffer.from('second":1}\n')];
  const kept: number[] = [];
  for (const chunk of chunks)
    reader.push(chunk, (bytes) => kept.push(bytes === chunk ? 0 : bytes.buffer.byteLength) > 0);
  expect(kept).toEqual([0, '{"firstsecond":1}'.length]);
});

test("a value beyond the limit is refused before it is held", () => {
  const long = '{"a":"123456789"}';
  const pieces = (...texts: string[]) => texts.map((text) => Buffer.from(text));
  for (const chunks of [[`${long}\n`], [long], [long.slice(0, 8), long.slice(8, 16)], [`{\n${long.slice(1)}`]]) {
    expect(() => read(pieces(...chunks), newReader(12))).toThrow(OversizeValue);
  }
});

test("white space between values is never held, however much comes", () => {
  const reader = newReader(100);
  const blank = Buffer.alloc(1000, " ");
  for (let piece = 0; piece < 10; piece++) {
    expect(read([blank], reader)).toEqual([]);
    expect(reader.pending).toBe(0);
  }
});

test("a stream that trickles byte by byte is held in few pieces, and read in one pass", () => {
  const value = `{"a":[${"{},".repeat(20_000)}{}]}`;
  const bytes = [...Buffer.from(`${value}\n`)].map((byte) => Buffer.from([byte]));
  const scanner = new EnvelopeScanner();
  let scanned = 0;
  const reader = new ValueReader((whole, start, end) => {
    scanned += end - start;
    return scanner.scan(whole, start, end);
  });
  expect(read(bytes, reader)).toEqual([value]);
  expect(scanned).toBeLessThan(value.length * 2);
});

test("nothing after a value that ends the stream is read", () => {
  const taken = (text: string) => {
    const values: string[] = [];
    newReader().push(Buffer.from(text), (bytes, start, end) => {
      values.push(bytes.toString("utf8", start, end).trim());
      return values.length < 2;
    });
    return values;
  };
  for (const between of ["\n", "", " ", "\r\n\n"]) {
    expect(taken(["{}", '{"b":1}', '{"c":1}'].join(between))).toEqual(["{}", '{"b":1}']);
  }
});
