import { expect, test } from "vitest";
import type { Deployment, DeploymentState } from "../runtime/deployment.ts";
import type { ErrorCode } from "../runtime/errors.ts";
import { isSettled } from "../runtime/status.ts";

/** Whether a runtime is ready whose functions were disabled with these codes. */
function isReadyWith(...codes: readonly ErrorCode[]): boolean {
  const deployments = codes.map((code): Pick<Deployment, "name" | "state" | "behind"> => {
    const state: DeploymentState = { type: "disabled", fault: { code, message: code } };
    return { name: "f", state, behind: [] };
  });
  return isSettled({ deployments, sandbox: () => undefined, sources: [] });
}

test("a runtime that can run nothing, by a fault that is no author's, is not ready", () => {
  expect(isReadyWith("WF_RUNTIME_INTERNAL", "WF_BUNDLE_BROKEN_OFF")).toBe(false);
});

test("a function's own faults, and a fault of one among others, keep nobody from being ready", () => {
  expect(isReadyWith("WF_BUNDLE_SYNTAX")).toBe(true);
  expect(isReadyWith("WF_BUNDLE_SYNTAX", "WF_RUNTIME_INTERNAL")).toBe(true);
  expect(isReadyWith()).toBe(true);
});
