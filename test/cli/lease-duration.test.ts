import { expect, test } from "vitest";
import { readLeaseDuration } from "../../runtime/cli/operand.ts";

test.each([
  ["10s", 10_000],
  ["1m30s", 90_000],
  ["2m", 120_000],
])("a Lease may last %s", (text, ms) => {
  expect(readLeaseDuration(text)).toBe(ms);
});

test.each(["9s", "121s", "10500ms", "15", "0"])("a Lease that lasts %s is refused", (text) => {
  expect(() => readLeaseDuration(text)).toThrow("WF_CLI_USAGE");
});
