import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { consoleLine } from "../../runtime/observe/console-log.ts";

const line = (record: object): string =>
  stripVTControlCharacters(consoleLine(JSON.stringify({ level: "info", time: "2026-01-01T00:00:00.000Z", ...record })));

describe("a line on the console", () => {
  it("tells function, change, object, outcome and time of a run", () => {
    const record = {
      function: "greet",
      type: "Added",
      object: "v1/ConfigMap a/b",
      outcome: "ok",
      durationMs: 3.4,
      attempt: 1,
    };
    expect(line({ ...record, msg: "handled" })).toMatch(/greet {2}Added v1\/ConfigMap a\/b {2}ok {2}3 ms$/);
  });

  it("shows a failure's stack below it", () => {
    const error = { name: "TypeError", message: "no", stack: "TypeError: no\n    at handler.ts:3:7" };
    expect(
      line({ function: "f", type: "Added", object: "o", outcome: "failed", msg: "attempt failed", error }),
    ).toContain("attempt failed\n  TypeError: no\n      at handler.ts:3:7");
  });

  it("shows the code around the topmost place of a failure's stack, with a caret below it", () => {
    const stack = "TypeError: no\n    at async handle (functions/f/handler.ts:3:9)";
    const record = { level: "warn", time: "2026-01-01T00:00:00.000Z", function: "f", error: { stack } };
    const source = "one\ntwo\n\tthree.four()\nfive";
    const text = stripVTControlCharacters(
      consoleLine(JSON.stringify(record), (file) => (file === "functions/f/handler.ts" ? source : undefined)),
    );
    expect(text.split("\n").slice(-4)).toEqual([
      "    1 | one",
      "    2 | two",
      "  > 3 | \tthree.four()",
      "      | \t       ^",
    ]);
    expect(consoleLine(JSON.stringify(record))).not.toContain("three");
  });

  it("shows a handler's fields, which cannot replace the runtime's", () => {
    const text = line({ function: "f", msg: "hi", fields: { function: "other", colour: "red" } });
    expect(text).toContain("f  hi");
    expect(text).toContain("colour=red");
  });

  it("passes on what is no record", () => {
    expect(consoleLine("plain text")).toBe("plain text");
  });
});
