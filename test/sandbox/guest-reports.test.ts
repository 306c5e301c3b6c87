import { expect, it } from "vitest";
import type { SandboxAttempt } from "../../runtime/sandbox/host/attempt.ts";
import { GuestReports } from "../../runtime/sandbox/host/guest-reports.ts";
import type { StackMapper } from "../../runtime/sandbox/positions/stack-mapper.ts";

const thrown = { name: "Error", message: "the token is s3cr3t", stack: "Error\n    at f (app:///f:1:1)" };

/** The output of a function, whose stacks wait for a thread until the test resolves their positions. */
function wordsOf() {
  const { promise: mapped, resolve } = Promise.withResolvers<string>();
  const lines: string[] = [];
  let isGone = false;
  const mapper = { map: () => mapped, mapJson: () => mapped, place: async () => undefined };
  const words = new GuestReports(
    { function: "f", mapper: mapper as unknown as StackMapper, reported: new Set(), isGone: () => isGone },
    { log: (_, level, message) => void lines.push(`${level} ${message}`), metric: () => {} },
    () => {},
  );
  return {
    words,
    lines,
    unload: () => {
      isGone = true;
    },
    /** Makes the thread answer. Resolves when all waiting output is processed. */
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

it("a line or a figure that may not be written is neither placed nor cleaned", () => {
  const seen: unknown[] = [];
  const note = (text: string) => {
    seen.push(text);
    return text;
  };
  const mapper = { map: note, mapJson: note, place: async () => undefined } as unknown as StackMapper;
  const asked: unknown[] = [];
  const output = {
    admits: (_: unknown, what: string, length: number) => {
      asked.push([what, length]);
      return false;
    },
    log: (...line: unknown[]) => void seen.push(line),
    metric: (...figure: unknown[]) => void seen.push(figure),
  };
  const words = new GuestReports({ function: "f", mapper, reported: new Set(), isGone: () => false }, output, () => {});
  const attempt = { caller: {}, logged: 0, metrics: 0 } as unknown as SandboxAttempt;
  expect(words.log(attempt, { no: 1, level: "info", message: "\u0000".repeat(4_000), fields: "{}" })).toBe(true);
  expect(words.count(attempt, { no: 1, type: "increment", name: "n", value: 1, labels: "{}" })).toBe(true);
  expect([asked, seen]).toEqual([
    [
      ["log", 4_002],
      ["metric", 3],
    ],
    [],
  ]);
});
