import { expect, it } from "vitest";
import { GuestWords } from "../../runtime/sandbox/host/guest-words.ts";
import type { StackMapper } from "../../runtime/sandbox/positions/stack-mapper.ts";

const thrown = { name: "Error", message: "the token is s3cr3t", stack: "Error\n    at f (app:///f:1:1)" };

/** A function's words, whose stacks wait for a thread until the test lets them have their places. */
function wordsOf() {
  const { promise: mapped, resolve } = Promise.withResolvers<string>();
  const lines: string[] = [];
  let isGone = false;
  const mapper = { map: () => mapped, mapJson: () => mapped, place: async () => undefined };
  const words = new GuestWords(
    { function: "f", mapper: mapper as unknown as StackMapper, told: new Set(), isGone: () => isGone },
    { log: (_, level, message) => void lines.push(`${level} ${message}`), metric: () => {} },
    () => {},
  );
  return {
    words,
    lines,
    unload: () => {
      isGone = true;
    },
    /** The thread answers; resolves when all that waited for it has been done. */
    async answer() {
      resolve("Error\n    at f (functions/f/handler.ts:1:1)");
      for (let turn = 0; turn < 10; turn++) await mapped;
    },
  };
}

it("a stray error is written once its stack has its places", async () => {
  const { words, lines, answer } = wordsOf();
  words.stray(thrown);
  expect(lines).toEqual([]);
  await answer();
  expect(lines).toEqual([expect.stringMatching(/^warn an error that no handler is left for/)]);
});

it("a stray error is not written once its code is gone: nobody knows any more which Secrets it may hold", async () => {
  const { words, lines, unload, answer } = wordsOf();
  words.stray(thrown);
  unload();
  await answer();
  expect(lines).toEqual([]);
});
