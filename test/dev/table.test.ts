import { styleText } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { table, tableOfTexts } from "../../runtime/dev/table.ts";

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

test("a text that is too long for its column is whole in a line below its row, without breaks", () => {
  const remedy = "add to its permissions: - { verbs: [create] }";
  const long = `${"it does not grant create ".repeat(5)};\n${remedy}`;
  const [, cut = "", whole = "", next = ""] = tableOfTexts(
    ["FILE", "GOT"],
    [
      ["f".repeat(90), long],
      ["b", "short"],
    ],
    1,
  );
  expect(cut).toMatch(/^f{90} {2}it does not .*…$/);
  expect(cut).not.toContain(remedy);
  expect(whole).toBe(`    GOT: ${long.replace(/\s+/g, " ")}`);
  expect(next).toMatch(/^b +short$/);
});
