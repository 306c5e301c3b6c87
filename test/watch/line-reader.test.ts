import fc from "fast-check";
import { expect, test } from "vitest";
import { LineReader, OversizeLine } from "../../runtime/watch/line-reader.ts";
import { splitAnywhere } from "./split.ts";

function read(chunks: Buffer[], reader = new LineReader()): string[] {
  const lines: string[] = [];
  for (const chunk of chunks) {
    reader.push(chunk, (bytes, start, end) => {
      lines.push(bytes.toString("utf8", start, end));
      return true;
    });
  }
  return lines;
}

test("lines are the same however the bytes are cut", () => {
  const line = fc.string({ unit: "binary", maxLength: 40 }).map((text) => text.replaceAll("\n", "\u2028"));
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat()), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((each) => `${each}\n`).join(""));
      expect(read(splitAnywhere(bytes, cuts))).toEqual(
        lines.map((each) => Buffer.from(each).toString()).filter((each) => each !== ""),
      );
    }),
  );
});

test("a line that spans chunks lies in memory of its own, and one within a chunk in that", () => {
  const reader = new LineReader();
  const chunks = [Buffer.from("whole\nfirst "), Buffer.from("second\n")];
  const kept: number[] = [];
  for (const chunk of chunks)
    reader.push(chunk, (bytes) => kept.push(bytes === chunk ? 0 : bytes.buffer.byteLength) > 0);
  expect(kept).toEqual([0, "first second".length]);
});

test("half a line at the end of a stream is not a line", () => {
  const reader = new LineReader();
  expect(read([Buffer.from('{"a":1}\n{"b"')], reader)).toEqual(['{"a":1}']);
  expect(reader.pending).toBe(4);
});

test("a line beyond the limit is refused before it is held", () => {
  const reader = new LineReader(10);
  expect(() => read([Buffer.from("123456"), Buffer.from("78901")], reader)).toThrow(OversizeLine);
  expect(() => read([Buffer.from("12345678901\n")], new LineReader(10))).toThrow(OversizeLine);
});

test("a stream that trickles byte by byte is held in few pieces", () => {
  const reader = new LineReader();
  const bytes = Buffer.from(`${"x".repeat(2000)}\n`);
  expect(
    read(
      [...bytes].map((byte) => Buffer.from([byte])),
      reader,
    ),
  ).toEqual(["x".repeat(2000)]);
});

test("nothing after a line that ends the stream is read", () => {
  const reader = new LineReader();
  const lines: string[] = [];
  reader.push(Buffer.from("a\nb\nc\n"), (bytes, start, end) => {
    lines.push(bytes.toString("utf8", start, end));
    return lines.length < 2;
  });
  expect(lines).toEqual(["a", "b"]);
});
