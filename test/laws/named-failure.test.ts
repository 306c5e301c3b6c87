import { describe, expect, test } from "vitest";
import { namedFailure } from "./named-failure.ts";

const file = "test/laws/laws.test.ts";
const report = (...assertionResults: object[]) => JSON.stringify({ testResults: [{ assertionResults }] });
const failed = (fullName: string, message: string) => ({ status: "failed", fullName, failureMessages: [message] });

describe("a mutant is caught", () => {
  test("by worlds where a broken law is named with its seed", () => {
    expect(namedFailure("edits", { code: 1, output: "SEED=7 no net change is lost: a@3\n" })).toBe(
      "SEED=7 no net change is lost: a@3",
    );
  });

  test("by a test file where a test is named that failed", () => {
    const output = report(failed("the laws hold", "AssertionError: expected 1 to be 2"), {
      status: "passed",
      fullName: "x",
    });
    expect(namedFailure(file, { code: 1, output })).toBe(`${file}: the laws hold`);
  });

  test.each([
    ["passes", "fleet", { code: 0, output: "" }],
    ["crashes before a seed is named", "fleet", { code: 1, output: "TypeError: x is not a function" }],
    ["names a seed that did not come to its end", "edits", { code: 2, output: "" }],
    ["does not end", "edits", { code: "endless", output: "SEED=7 a law" }],
    ["is killed", "edits", { code: null, output: "SEED=7 a law" }],
    ["cannot be loaded", file, { code: 1, output: report() }],
    ["says nothing that can be read", file, { code: 1, output: "{ no" }],
    ["takes too long", file, { code: 1, output: report(failed("the laws hold", "Error: Test timed out in 20000ms.")) }],
  ] as const)("by nothing that %s", (_, caughtBy, ended) => {
    expect(namedFailure(caughtBy, ended)).toBeUndefined();
  });
});
