import { expect, test } from "vitest";
import { WatchfireError } from "../../../runtime/base/errors.ts";
import type { Condition } from "../../../runtime/control/function-status/function-object.ts";
import { type SetFunction, type SetReport, setStatusOf } from "../../../runtime/control/function-status/set-object.ts";

const noon = Date.parse("2026-11-21T12:00:00.250Z");

const report = (functions: readonly SetFunction[], more: Partial<SetReport> = {}): SetReport => ({
  state: { name: "shop", revision: 4, functions: functions.map(({ name }) => name), fault: undefined },
  functions,
  record: undefined,
  isPaused: false,
  generation: 2,
  ...more,
});

const statusOf = (of: SetReport, before: readonly Condition[] = []) => setStatusOf(of, before, noon);
const said = (of: SetReport) =>
  statusOf(of).conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);

const running = { name: "a", ready: true, deadLetters: 2 };
const starting = { name: "b", ready: false, reason: "Starting" };
const failing = { name: "c", ready: false, reason: "KindMissing", deadLetters: 1 };

test("a set whose functions all run says so", () => {
  expect(said(report([running]))).toEqual(["Ready=True/Running", "Deployed=True/Deployed", "Paused=False/NotPaused"]);
  expect(statusOf(report([running]))).toMatchObject({
    ready: "1/1",
    reason: null,
    message: null,
    observedGeneration: 2,
  });
});

test("a function that fails is the set's reason before one that starts, and both are named", () => {
  expect(statusOf(report([running, starting, failing]))).toMatchObject({
    ready: "1/3",
    reason: "KindMissing",
    message: "b: Starting, c: KindMissing",
    counts: { functions: 3, ready: 1, failing: 1, deadLetters: 3 },
    functions: [{ name: "b" }, { name: "c" }, { name: "a", state: "Ready" }],
  });
});

test("a deployment that is not in use is the set's reason, while the functions before it run", () => {
  const fault = new WatchfireError("WF_DEPLOYED_INDEX", { what: "functions.json is not JSON" });
  const damaged = report([running], { state: { ...report([running]).state, fault } });
  expect(said(damaged)).toEqual(["Ready=True/Running", "Deployed=False/DeploymentDamaged", "Paused=False/NotPaused"]);
  expect(statusOf(damaged)).toMatchObject({ ready: "1/1", reason: "DeploymentDamaged" });
});

test("of a set of many functions a hundred are named, those that do not run first, and all are counted", () => {
  const many = Array.from({ length: 300 }, (_, index) => ({ name: `f${index}`, ready: index !== 299 }));
  const { functions, counts, message } = statusOf(report(many));
  expect([functions.length, functions[0]?.name, counts.functions, message]).toEqual([
    100,
    "f299",
    300,
    "f299: Starting",
  ]);
  const { message: long } = statusOf(report(many.map(({ name }) => ({ name, ready: false }))));
  expect(long).toMatch(/, and 290 more$/);
});

test("a condition keeps its time as long as its status stays", () => {
  const before = statusOf(report([failing])).conditions.map((each) => ({ ...each, lastTransitionTime: "before" }));
  const times = statusOf(report([running]), before).conditions.map(({ lastTransitionTime }) => lastTransitionTime);
  expect(times).toEqual(["2026-11-21T12:00:00Z", "before", "before"]);
});
