import { styleText } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { table } from "../../runtime/dev/table.ts";

beforeEach(() => vi.stubEnv("FORCE_COLOR", "1"));
afterEach(() => vi.unstubAllEnvs());

const startOfSequence = String.fromCharCode(27);

test("a table dims its header in a terminal, and shows no escape of it", () => {
  expect(table(["A", "LONG"], [["first", "x"]])).toEqual([styleText("gray", "A      LONG"), "first  x"]);
  expect(styleText("gray", "A")).toContain(startOfSequence);
});

test("a cell moves no cursor and breaks no line, and the columns after it stand where they should", () => {
  const rows = [
    [`red${startOfSequence}[31m`, "a\nb"],
    ["short", "c\td"],
  ];
  const [, first = "", second = ""] = table(["A", "B"], rows);
  expect([first, second].join("")).not.toMatch(/[\p{Cc}]/u);
  const column = "red\\u001b[31m".length + 2;
  expect([first.indexOf("a b"), second.indexOf("c d")]).toEqual([column, column]);
});
