import { expect, test } from "vitest";
import { readHistory } from "../../runtime/cli/operand.ts";
import { historyAge, historySize } from "../../runtime/cli/options.ts";

const read = (size: string = historySize.default, age: string = historyAge.default) =>
  readHistory({ "history-size": size, "history-age": age });

test("a history has 64 MiB and seven days, unless options say otherwise", () => {
  expect(read()).toEqual({ bytes: 64 * 2 ** 20, ageMs: 7 * 86_400_000 });
  expect(read("1Gi", "90m")).toEqual({ bytes: 2 ** 30, ageMs: 90 * 60_000 });
});

test("a size of 0 turns the history off", () => {
  expect(read("0")).toBeUndefined();
});

test.each([
  ["a size that is none", "much", "7d"],
  ["a size that no page fits in", "100Ki", "7d"],
  ["an age that is none", "64Mi", "a week"],
  ["no age", "64Mi", "0s"],
])("is refused: %s", (_, size, age) => {
  expect(() => read(size, age)).toThrow("WF_CLI_USAGE");
});
