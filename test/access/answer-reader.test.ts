import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { AnswerReader } from "../../runtime/access/answer-reader.ts";

const mebibyte = Buffer.alloc(2 ** 20);
const signal = new AbortController().signal;

/** An answer that the test writes piece by piece, and the amount that was read. */
function answer(reader: AnswerReader, functionName: string) {
  const body = new PassThrough({ highWaterMark: 1 });
  const reading = { functionName, limit: 2 ** 24, tooLarge: () => new Error("too large"), signal };
  const read = reader.read(body, reading, (bytes) => bytes.length);
  return { body, read };
}

/** Writes a mebibyte. Returns whether it was read. */
const isTaken = async (body: PassThrough): Promise<boolean> => {
  body.write(mebibyte);
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  return body.readableLength + body.writableLength === 0;
};

describe("of one function's answers", () => {
  it("a large one is read at a time, the small beside it, and another function's as well", async () => {
    const reader = new AnswerReader();
    const [first, second, small, other] = ["f", "f", "f", "g"].map((name) => answer(reader, name));
    if (!first || !second || !small || !other) throw new Error("unreachable");
    for (const { body } of [first, second, other]) for (let count = 0; count < 2; count++) await isTaken(body);
    expect(await isTaken(first.body)).toBe(true);
    expect(await isTaken(second.body)).toBe(false);
    expect(await isTaken(other.body)).toBe(true);
    small.body.end("small");
    expect(await small.read).toBe(5);
    first.body.end();
    expect(await first.read).toBe(3 * 2 ** 20);
    expect(await isTaken(second.body)).toBe(true);
    second.body.end();
    other.body.end();
    expect([await second.read, await other.read]).toEqual([4 * 2 ** 20, 3 * 2 ** 20]);
  });

  it("one that breaks off leaves the next its turn", async () => {
    const reader = new AnswerReader();
    const [first, second] = [answer(reader, "f"), answer(reader, "f")];
    for (const { body } of [first, second]) for (let count = 0; count < 2; count++) await isTaken(body);
    first.body.destroy(new Error("broken"));
    await expect(first.read).rejects.toThrow("broken");
    second.body.end(mebibyte);
    expect(await second.read).toBe(3 * 2 ** 20);
  });
});
