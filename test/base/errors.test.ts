import { describe, expect, it } from "vitest";
import { errorCodes, WatchfireError } from "../../runtime/base/errors.ts";
import { lowerFirst, systemReason } from "../../runtime/base/wording.ts";

describe("the registry of errors", () => {
  it("words every code alike: a clause, a hint to act on, no full stop, no line above a terminal's reach", () => {
    const odd = Object.entries(errorCodes).flatMap(([code, { summary, hint }]) =>
      [summary, hint]
        .filter((text) => /[.!]$|\n|^\s|\s$|^[A-Z][a-z]/.test(text) || text.length > 200 || text.length < 5)
        .map((text) => `${code}: ${text}`),
    );
    expect(odd).toEqual([]);
  });
});

describe("a failure's line", () => {
  const place = { file: "f.yaml", line: 3, column: 5 };

  it("says code, place, path, what, actual value and hint, in that order", () => {
    const error = new WatchfireError("WF_CLI_USAGE", { what: "w", place, path: "a.b", actual: "v", hint: "h" });
    expect(error.message).toBe('WF_CLI_USAGE f.yaml:3:5 a.b: w, got "v"; h');
  });

  it("is one line, whatever a library puts into it", () => {
    const error = new WatchfireError("WF_RUNTIME_INTERNAL", { what: "one\r\n  two\u2028three", actual: "a\nb" });
    expect(error.message).not.toMatch(/[\r\n\u2028\u2029]/);
    expect(error.message).toContain("one two three");
  });

  it("holds nothing that a terminal would act on, be it in a file's name", () => {
    const place = { file: "a\u001b[31m.ts" };
    const { message } = new WatchfireError("WF_BUNDLE_SYNTAX", { what: "x\u0007\u009b2J\u202e", place });
    expect(message).toMatch(/^WF_BUNDLE_SYNTAX a\\u001b\[31m\.ts: x\\u0007\\u009b2J\\u202e; /);
  });

  it("shows at most 80 characters of a value", () => {
    const { message } = new WatchfireError("WF_CLI_USAGE", { what: "w", actual: "x".repeat(10_000) });
    expect(message.length).toBeLessThan(150);
  });

  it("says how many more there are, each of which has its own line", () => {
    const more = [new WatchfireError("WF_BUNDLE_SYNTAX", { what: "two", place })];
    const error = new WatchfireError("WF_BUNDLE_SYNTAX", { what: "one", place, more });
    expect(error.message).toMatch(/^WF_BUNDLE_SYNTAX f\.yaml:3:5: one; .* \(and 1 more, /);
    expect(error.faults.map(({ message }) => message)).toEqual([
      expect.stringMatching(/: one; [^(]*$/),
      expect.stringMatching(/: two; [^(]*$/),
    ]);
  });
});

describe("another's sentence within ours", () => {
  it.each([
    ["Unexpected token.", "unexpected token"],
    ["API version of the kind.", "API version of the kind"],
    ["JSON is expected", "JSON is expected"],
    ["ConfigMap is missing", "ConfigMap is missing"],
    ["A field", "a field"],
    ["already small", "already small"],
    ["", ""],
  ])("%j reads %j", (sentence, clause) => {
    expect(lowerFirst(sentence)).toBe(clause);
  });

  it("of the operating system is in words, with its code", () => {
    expect(systemReason(Object.assign(new Error("EACCES: denied, open 'x'"), { code: "EACCES" }))).toBe(
      "permission is denied (EACCES)",
    );
    expect(systemReason(new Error("Odd."))).toBe("odd");
  });
});
