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

  it("shows each of a handler's fields, whatever it is called", () => {
    const fields = {
      type: "t",
      trigger: "u",
      attempt: 1,
      object: "o",
      run: 7,
      outcome: "x",
      error: "e",
      durationMs: 3,
    };
    expect(line({ function: "f", msg: "seen", trigger: "own", run: "r", attempt: 1, object: "a/b", fields })).toMatch(
      /f {2}seen {2}type=t {2}trigger=u {2}attempt=1 {2}object=o {2}run=7 {2}outcome=x {2}error=e {2}durationMs=3$/,
    );
  });

  it("shows an error among a handler's fields by name and message, with its stack below", () => {
    const err = { name: "TypeError", message: "no", stack: "TypeError: no\n    at handler.ts:3:7" };
    expect(line({ function: "f", msg: "failed", fields: { err, left: 2 } })).toMatch(
      /f {2}failed {2}err=TypeError: no {2}left=2\n {2}TypeError: no\n {6}at handler\.ts:3:7$/,
    );
  });

  it("passes on what is no record", () => {
    expect(consoleLine("plain text")).toBe("plain text");
  });
});
