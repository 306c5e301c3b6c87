import { expect, test } from "vitest";
import { type Condition, statusOf } from "../../../runtime/control/function-status/function-object.ts";
import type { FunctionReport } from "../../../runtime/control/function-status/function-report.ts";
import { reportOf } from "./report.ts";

const noon = Date.parse("2026-11-21T12:00:00.250Z");
const trigger = { name: "settings", apiVersion: "v1", kind: "ConfigMap", state: "watching" };

const report = (more: Partial<FunctionReport> = {}) => reportOf({ name: "greet", triggers: [trigger], ...more });

/** The condition in short: `Ready=False/KindMissing …`. */
const said = (of: FunctionReport) =>
  statusOf(of, [], noon).conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);

test("a function that runs says so in every condition", () => {
  expect(said(report())).toEqual([
    "Ready=True/Running",
    "Built=True/Built",
    "Permitted=True/Granted",
    "Watching=True/Watching",
  ]);
});

const stopped = { ready: false, message: "why" } as const;
const refused = { ready: true, message: "why", reason: "ChangeRefused" } as const;

test.each<[string, Partial<FunctionReport>, string]>([
  [
    "a kind that is not installed",
    { ...stopped, reason: "KindMissing", triggers: [{ ...trigger, state: "missing" }] },
    "Ready=False/KindMissing Watching=False/KindMissing",
  ],
  [
    "a watch that is not allowed",
    { ...stopped, reason: "Forbidden", triggers: [{ ...trigger, state: "forbidden" }] },
    "Ready=False/Forbidden Permitted=False/Forbidden Watching=False/Forbidden",
  ],
  [
    "rights that its account lacks",
    { ...stopped, reason: "Forbidden" },
    "Ready=False/Forbidden Permitted=False/Forbidden",
  ],
  [
    "code that cannot be built",
    { ...stopped, reason: "BuildFailed", code: "WF_BUNDLE_SYNTAX" },
    "Ready=False/BuildFailed Built=False/BuildFailed",
  ],
  [
    "code that fails as it is loaded",
    { ...stopped, reason: "LoadFailed" },
    "Ready=False/LoadFailed Built=False/LoadFailed",
  ],
  ["a change that cannot be built", { ...refused, code: "WF_BUNDLE_SYNTAX" }, "Built=False/BuildFailed"],
  ["a change that asks for rights it has not", { ...refused, code: "WF_KUBE_FORBIDDEN" }, "Permitted=False/Forbidden"],
  [
    "a manifest that is refused",
    { ...stopped, reason: "ManifestRefused" },
    "Ready=False/ManifestRefused Built=False/ManifestRefused",
  ],
  [
    "a deployment that is damaged",
    { ...stopped, reason: "DeploymentDamaged" },
    "Ready=False/DeploymentDamaged Built=False/DeploymentDamaged",
  ],
  ["a function in quarantine", { ...stopped, reason: "Quarantined" }, "Ready=False/Quarantined"],
  [
    "an API server that does not answer for a moment",
    { ready: true, message: "why", reason: "Unreachable", triggers: [{ ...trigger, state: "backoff" }] },
    "Watching=False/Unreachable",
  ],
])("%s is named in the conditions it concerns, and in no other", (_, state, wrong) => {
  expect(said(report(state)).filter((condition) => !condition.includes("=True/"))).toEqual(wrong.split(" "));
});

test("a condition's time is when its status changed, not when it was last written", () => {
  const first = statusOf(report(), [], noon);
  const later = statusOf(
    report({ ready: false, reason: "BuildFailed", message: "why" }),
    first.conditions,
    noon + 60_000,
  );
  const times = ({ conditions }: { conditions: readonly Condition[] }) =>
    conditions.map((each) => each.lastTransitionTime);
  expect(times(first)).toEqual(Array(4).fill("2026-11-21T12:00:00Z"));
  expect(times(later)).toEqual([
    "2026-11-21T12:01:00Z",
    "2026-11-21T12:01:00Z",
    "2026-11-21T12:00:00Z",
    "2026-11-21T12:00:00Z",
  ]);
});

test("what is longer than a page is cut, and what is no more is taken away", () => {
  const long = statusOf(report({ ready: false, reason: "Starting", message: "x".repeat(100_000) }), [], noon);
  expect(long.message?.length).toBeLessThan(4096);
  expect(statusOf(report(), [], noon)).toMatchObject({ reason: null, message: null, lastEvent: null });
});
