import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { BadList, ListSplitter } from "../../runtime/informer/scan/list-splitter.ts";
import { objectText } from "./json-text.ts";
import { splitAnywhere } from "./split.ts";

function split(chunks: Buffer[]) {
  const splitter = new ListSplitter();
  const items: string[] = [];
  for (const chunk of chunks) {
    splitter.push(chunk, (bytes, start, end) => items.push(bytes.toString("utf8", start, end)));
  }
  return { items, envelope: splitter.end() };
}

const space = fc.constantFrom("", " ", "\n", "\r\n\t");

test("a list's items and envelope are the same however its bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(objectText, space)),
      space,
      fc.boolean(),
      fc.array(fc.nat()),
      (items, gap, late, cuts) => {
        const metadata = '"metadata":{"resourceVersion":"77","continue":"more","x":["]","{"]}';
        const array = `"items"${gap}:${gap}[${gap}${items.map(([text, after]) => text + after).join(",")}]`;
        const text = `{"kind":"PodList","apiVersion":"v1",${late ? `${array},${metadata}` : `${metadata},${array}`}}\n`;
        const found = split(splitAnywhere(Buffer.from(text), cuts));
        expect(found.items).toEqual(items.map(([item]) => Buffer.from(item).toString()));
        expect(found.envelope).toEqual({
          kind: "PodList",
          apiVersion: "v1",
          resourceVersion: "77",
          continueToken: "more",
        });
      },
    ),
  );
});

test("an item that trickles byte by byte is held in few pieces", () => {
  const splitter = new ListSplitter();
  const text = `{"items":[{"a":"${"x".repeat(20_000)}"}]}`;
  const concat = vi.spyOn(Buffer, "concat");
  const items: number[] = [];
  for (const byte of Buffer.from(text)) splitter.push(Buffer.from([byte]), (_, start, end) => items.push(end - start));
  const pieces = concat.mock.calls.map(([list]) => list.length);
  concat.mockRestore();
  expect(items).toEqual([20_008]);
  expect(Math.max(...pieces)).toBeLessThanOrEqual(257);
});

test("a list that is cut short is no list", () => {
  const text = '{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[{"a":1},{"b":[2,"]"]}]}';
  for (let end = 0; end < text.length; end++) {
    expect(() => split([Buffer.from(text.slice(0, end))]), text.slice(0, end)).toThrow(BadList);
  }
  expect(split([Buffer.from(text)]).items).toHaveLength(2);
});

test.each([
  '{"items":[{"a":1},]}',
  '{"items":[,{"a":1}]}',
  '{"items":[{"a":1}{"b":1}]}',
  '{"items":[1]}',
  '{"items":[{}],"items":[{}]}',
  '{"\\u0069tems":[{"a":1}]}',
  '{"items":[]}}',
  "<html><body>sign in</body></html>",
])("a body that is no list is refused: %s", (text) => {
  expect(() => split([Buffer.from(text)])).toThrow(BadList);
});

test("a list without items has none", () => {
  expect(split([Buffer.from('{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":null}')]).items).toEqual([]);
});

test("what a list says with null it does not say, as servers that are not written in Go do", () => {
  const text = '{"kind":null,"metadata":{"resourceVersion":"7","continue":null,"remainingItemCount":null},"items":[]}';
  const envelope = { kind: "", apiVersion: "", resourceVersion: "7", continueToken: "" };
  expect(split([Buffer.from(text)])).toEqual({ items: [], envelope });
});
