import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readEvents } from "../../runtime/sandbox/executor/arrivals.ts";
import { abortItem, type BatchItem, composeBatch, replyItem } from "../../runtime/sandbox/executor/batch.ts";
import type { EventItem } from "../../runtime/sandbox/messages.ts";

interface Given {
  readonly head: string;
  readonly object: string;
  readonly old: string | undefined;
}

/** The items and the body of a frame. */
function frameOf(given: readonly Given[]): { items: EventItem[]; body: Buffer } {
  const bytes = ({ head, object, old }: Given) => [head, object, old ?? ""].map((text) => Buffer.from(text));
  const items = given.map((event, index): EventItem => {
    const [head = 0, object = 0, old = 0] = bytes(event).map(({ length }) => length);
    return [index + 1, 1000, head, object, event.old === undefined ? -1 : old, 3, 4];
  });
  return { items, body: Buffer.concat(given.flatMap(bytes)) };
}

const textOf = ({ text, from, to }: BatchItem) => text.slice(from, to);
const whole = ({ head, object, old = "" }: Given) => head + object + old;

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "grapheme" }),
  fc.integer({ min: 20_000, max: 70_000 }).map((length) => "x".repeat(length)),
);
const events = fc.array(fc.record({ head: text, object: text, old: fc.option(text, { nil: undefined }) }), {
  maxLength: 12,
});

describe("the events of a frame", () => {
  it("have their texts, and lengths in characters, whatever bytes they are", () => {
    fc.assert(
      fc.property(events, (given) => {
        const { items, body } = frameOf(given);
        const read = readEvents(items, body);
        expect(read.map(textOf)).toEqual(given.map(whole));
        expect(read.map(({ head }) => JSON.parse(head))).toEqual(
          given.map(({ head, object, old }, index) => {
            const isKnown = Buffer.byteLength(object) === object.length;
            return [0, index + 1, head.length, object.length, old?.length ?? -1, isKnown ? 3 : -1, 4];
          }),
        );
      }),
    );
  });

  it("keep at most 112 KiB of others each, and none whose bytes are not characters", () => {
    const given = Array.from({ length: 100 }, (_, n) => ({ head: `{"id":"${n}"}`, object: "x".repeat(3000), old: "" }));
    for (const { text } of readEvents(...partsOf(given))) expect(text.length).toBeLessThanOrEqual(112 * 1024);
    const other = given.map((event) => ({ ...event, object: `${event.object}é` }));
    expect(readEvents(...partsOf(other)).map(({ text }) => text)).toEqual(other.map(whole));
  });

  it("that lie end to end travel as one text, and others, answers and ends of time beside them in their order", () => {
    const given = Array.from({ length: 6 }, (_, n) => ({ head: `{"id":"${n}"}`, object: "{}", old: undefined }));
    const read = readEvents(...partsOf(given));
    const [head, ...texts] = composeBatch(7, "", 9, read);
    expect(texts).toEqual([given.map(whole).join("")]);
    expect(JSON.parse(head)).toEqual([7, "", 9, read.map((event) => JSON.parse(event.head))]);
    const reply = replyItem(1, 5, 1, "{}");
    const [a, b, , d, e] = read as readonly BatchItem[] as [BatchItem, BatchItem, BatchItem, BatchItem, BatchItem];
    expect(composeBatch(7, "", 9, [reply, a, b, abortItem(1, "cpu"), d, e]).slice(1)).toEqual([
      "{}",
      textOf(a) + textOf(b),
      textOf(d) + textOf(e),
    ]);
    expect(composeBatch(7, "", 9, [])).toEqual(['[7,"",9,[]]']);
  });
});

function partsOf(given: readonly Given[]) {
  const { items, body } = frameOf(given);
  return [items, body] as const;
}
