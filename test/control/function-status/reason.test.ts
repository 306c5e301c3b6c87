import { expect, test } from "vitest";
import { type ErrorCode, errorCodes } from "../../../runtime/base/errors.ts";
import { reasonOfCode } from "../../../runtime/control/function-status/reason.ts";

const codes = Object.keys(errorCodes) as ErrorCode[];

/** Rooms that a function passes before its handler is loaded and receives events. */
const passed =
  /^WF_(?:KUBE|MANIFEST|BUNDLE|BUILD|FILTER|SANDBOX|DEPLOYED|READS|CHECKPOINT|ACCESS_ENV|ACCESS_OWN_OBJECT)/;

test("no code that keeps a function from its events is called a fault of the runtime's own", () => {
  const unnamed = codes.filter((code) => passed.test(code) && reasonOfCode(code) === "InternalError");
  expect(unnamed).toEqual([]);
});

test("a fault of the runtime's own is called one", () => {
  expect(reasonOfCode("WF_RUNTIME_INTERNAL")).toBe("InternalError");
});

test.each<[ErrorCode, string]>([
  ["WF_SANDBOX_LOAD", "LoadFailed"],
  ["WF_SANDBOX_LOAD_TIME", "LoadFailed"],
  ["WF_SANDBOX_MEMORY", "LoadFailed"],
  ["WF_SANDBOX_MODE", "LoadFailed"],
  ["WF_SANDBOX_KILLED", "LoadFailed"],
  ["WF_SANDBOX_EXECUTOR", "ExecutorMissing"],
  ["WF_SANDBOX_CONTAINER_MEMORY", "ExecutorMissing"],
  ["WF_SANDBOX_NO_WARDEN", "ExecutorMissing"],
  ["WF_BUILD_DAMAGED", "DeploymentDamaged"],
  ["WF_BUILD_UNTRUSTED", "DeploymentDamaged"],
])("what the handler does is told from what it runs in: %s is %s", (code, reason) => {
  expect(reasonOfCode(code)).toBe(reason);
});
