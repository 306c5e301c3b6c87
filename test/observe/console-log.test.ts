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

  it("names the object that it is about, and what a person can type", () => {
    const object = "v1/ConfigMap a/b";
    expect(line({ function: "f", msg: "event given up", object, attempt: 5, letter: "7", show: "do 7" })).toMatch(
      /f {2}event given up {2}v1\/ConfigMap a\/b {2}attempt 5 {2}letter=7 {2}show=do 7$/,
    );
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
      consoleLine(JSON.stringify(record), (name, file) =>
        name === "f" && file === "functions/f/handler.ts" ? source : undefined,
      ),
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

  it("cannot be begun by what a handler says: what follows a line break is indented", () => {
    const forged = "hello\n19:00:00  innocent  Added v1/ConfigMap demo/x  failed";
    const error = { name: forged, message: forged, stack: forged };
    const records = [
      { msg: forged },
      { msg: "", fields: { [forged]: forged, list: [forged] } },
      { msg: "", fields: { error } },
      { msg: "attempt failed", outcome: "failed", error },
    ];
    for (const record of records) {
      const text = line({ function: "f", type: "Added", object: "o", ...record });
      expect(text.split("\n").filter((one) => /^\S/.test(one))).toHaveLength(1);
    }
  });

  it("steers no terminal, and turns no text around, whoever says it", () => {
    const steering = "a\u001b[31m\u0007\r\u009b\u2028\u202e\u2066b";
    const shown = "a\\u001b[31m\\u0007\\u000d\\u009b\\u2028\\u202e\\u2066b";
    const record = { msg: steering, fields: { [steering]: steering }, error: { stack: steering } };
    const text = line({ function: steering, ...record });
    expect(text.split(shown)).toHaveLength(6);
    expect(text).not.toMatch(/[\p{Cc}--\n]|[\u2028\u202e\u2066]/v);
  });

  it.each<object>([
    { e: { name: { toString: 1, valueOf: 1 }, message: "m", stack: "s" } },
    { e: { name: "n", message: { toString: 1 }, stack: { toString: 1 } } },
    { e: { name: null, message: null, stack: null } },
    { toString: 1, toJSON: 1, __proto__: null },
  ])("shows fields that are no texts: %j", (fields) => {
    expect(line({ function: "f", msg: "hi", fields })).toMatch(/f {2}hi {2}\w+=/);
  });

  it("shows a record that it cannot lay out as it came", () => {
    const record = `{"level":"info","time":"2026-01-01T00:00:00.000Z","fields":{"a":${"[".repeat(90_000)}${"]".repeat(90_000)}}}`;
    expect(consoleLine(record)).toBe(record);
  });

  it("passes on what is no record", () => {
    expect(consoleLine("plain text")).toBe("plain text");
  });
});
