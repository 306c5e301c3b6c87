import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clean } from "../../runtime/base/wording.ts";
import { readUpFrame } from "../../runtime/sandbox/host/frames.ts";
import { cleanObject, readOutbox } from "../../runtime/sandbox/host/run-output.ts";
import { encodeFrame, type Frame, FrameError, FrameReader, frameType } from "../../runtime/sandbox/wire.ts";

const frames = fc.array(
  fc.record({
    type: fc.integer({ min: 0, max: 255 }),
    header: fc.jsonValue(),
    segments: fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 3 }),
  }),
  { maxLength: 8 },
);

/** Splits bytes at the given positions, in any order. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

describe("frames", () => {
  it("come out as they went in, wherever the stream is cut", () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(10_000), { maxLength: 20 }), (sent, places) => {
        const bytes = Buffer.concat(
          sent.flatMap(({ type, header, segments }) => encodeFrame(type, header, segments.map(Buffer.from))),
        );
        const reader = new FrameReader(1_000_000);
        const received = cut(bytes, places).flatMap((chunk) => [...reader.push(chunk)]);
        expect(received.map(({ type, header, body }) => [type, JSON.parse(header), body.toString("hex")])).toEqual(
          sent.map(({ type, header, segments }) => [
            type,
            JSON.parse(JSON.stringify(header)),
            Buffer.concat(segments).toString("hex"),
          ]),
        );
      }),
    );
  });

  it("that take the same memory one after another are whole until the next is taken", () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(10_000), { maxLength: 20 }), fc.nat(200), (sent, places, spare) => {
        const encoded = sent.map(({ type, header, segments }) =>
          Buffer.concat(encodeFrame(type, header, segments.map(Buffer.from))),
        );
        const reader = new FrameReader(1_000_000, spare);
        const received: string[] = [];
        for (const chunk of cut(Buffer.concat(encoded), places)) {
          for (const { type, header, body } of reader.push(chunk))
            received.push(Buffer.concat(encodeFrame(type, JSON.parse(header), [body])).toString("hex"));
        }
        expect(received).toEqual(encoded.map((bytes) => bytes.toString("hex")));
      }),
    );
  });

  it("longer than allowed are refused by their length alone, before a byte is kept", () => {
    const reader = new FrameReader(100);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(101);
    expect(() => [...reader.push(length)]).toThrow(FrameError);
  });

  it("of random bytes end in a frame or a FrameError, never in anything else", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 10 }), (chunks) => {
        const reader = new FrameReader(1000);
        try {
          for (const chunk of chunks) for (const frame of reader.push(Buffer.from(chunk))) readUpFrame(frame);
        } catch (error) {
          expect(error).toBeInstanceOf(FrameError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe("what an executor says", () => {
  const types = Object.values(frameType);
  const anyFrame = fc.record({
    type: fc.constantFrom(...types),
    header: fc.oneof(fc.string(), fc.json()),
    body: fc.oneof(fc.string(), fc.json()).map((text) => Buffer.from(text)),
  }) satisfies fc.Arbitrary<Frame>;

  it("is taken or refused, and never throws", () => {
    fc.assert(
      fc.property(anyFrame, (frame) => {
        readUpFrame(frame);
      }),
      { numRuns: 2000 },
    );
  });

  it("is refused where an outbox has an entry that no guest writes", () => {
    const outbox = (done: unknown, calls: unknown = [], texts = "") =>
      readOutbox(Buffer.from(`${JSON.stringify([done, calls, [], [], 0, [], 0])}\n${texts}`));
    expect(outbox([1, 2])?.done).toHaveLength(2);
    expect(outbox([[1, "failed", 1, 2, 3, -1]], [], "abbccc")?.done).toMatchObject([
      { no: 1, kind: "failed", name: "a", message: "bb", stack: "ccc" },
    ]);
    expect(outbox([-1])).toBeUndefined();
    expect(readOutbox(Buffer.from("[[],[],[],[],-1,[],-1]\n"))).toBeUndefined();
    expect(outbox([[1, "won", 0, 0, 0, -1]])).toBeUndefined();
    expect(outbox([[1, "failed", {}, 0, 0, -1]])).toBeUndefined();
    expect(outbox([[1, "failed", 1, 2, 4, -1]], [], "abbccc")).toBeUndefined();
    expect(outbox([[1, "failed", 1, 2, 2, -1]], [], "abbccc")).toBeUndefined();
    expect(outbox([[1, "failed", 0, -1, 1, -1]])).toBeUndefined();
    expect(outbox([], [[1, 1, "kube.get", { not: "a length" }]])).toBeUndefined();
    expect(outbox(Array.from({ length: 2000 }, (_, index) => index))).toBeUndefined();
    expect(readOutbox(Buffer.from("[[],[],[],[],-1,[],0]"))).toBeUndefined();
  });

  it("is refused where texts are longer than a guest's own limits leave them", () => {
    const outbox = (heads: readonly unknown[], length: number) =>
      readOutbox(Buffer.from(`${JSON.stringify(heads)}\n${"x".repeat(length)}`));
    const calls = (length: number) => [[], [[1, 1, "kube.get", length]], [], [], -1, [], 0];
    const lines = (count: number) => [[], [], Array(count).fill([1, "info", 4000, 0]), [], -1, [], 0];
    const samples = (length: number) => [[], [], [], [[1, "increment", length, 1, 0]], -1, [], 0];
    expect(outbox(calls(2_000_000), 2_000_000)).toBeDefined();
    expect(outbox(calls(2_300_000), 2_300_000)).toBeUndefined();
    expect(outbox(lines(70), 280_000)).toBeDefined();
    expect(outbox(lines(80), 320_000)).toBeUndefined();
    expect(outbox(samples(100), 100)).toBeDefined();
    expect(outbox(samples(300), 300)).toBeUndefined();
    expect(outbox([[[1, "failed", 0, 9000, 0, -1]], [], [], [], -1, [], 0], 9000)).toBeUndefined();
  });

  it("has its control characters written out", () => {
    expect(clean("a\u001b[2J\u009b\u2028\tb")).toBe("a\\u001b[2J\\u009b\\u2028\tb");
    const anyText = fc.string({
      unit: fc.oneof(fc.constantFrom(...'\\"u0b\u0007\u001b\u009b\r\u2029é💥'), fc.string()),
    });
    fc.assert(
      fc.property(anyText, anyText, (key, value) => {
        const wanted = { [clean(key)]: [clean(value), 1] };
        expect(cleanObject(JSON.stringify({ [key]: [value, 1] }))).toEqual(wanted);
      }),
    );
    expect(cleanObject(`{"a":"\\u001B\\u0041\\\\u001b"}`)).toEqual({ a: "\\u001bA\\u001b" });
    expect(cleanObject("[1]")).toEqual({});
    expect(cleanObject("{")).toEqual({});
  });
});
