import { expect, it } from "vitest";
import { describeStatus } from "../../runtime/cli/status.ts";
import { statusAnswerSchema } from "../../runtime/control/status-answer.ts";

const now = Date.parse("2026-01-02T00:00:00Z");
const lines = (answer: object) => describeStatus(statusAnswerSchema.parse(answer), now);

it("a function's line has what waits in memory and on disk, and below the table stands why it is not ready", () => {
  const counts = { queued: 2, spilled: 5, inFlight: 1, failures: 4, deadLetters: 3, lagSeconds: 200 };
  const text = lines({
    functions: [
      { name: "copy", ready: true, ...counts, lastEvent: "2026-01-01T23:59:30Z" },
      { name: "greet", ready: false, reason: "BuildFailed", message: "first\nsecond" },
    ],
  });
  const rows = text.map((line) => line.split(/ {2,}/));
  expect(rows).toContainEqual(["copy", "Ready", "7", "3 min", "1", "30 s ago", "4", "3"]);
  expect(text.slice(-2)).toEqual(["  greet: first", "  greet: second"]);
});

it("a function's line has its set where there are several", () => {
  const one = { name: "copy", ready: true, set: "team-a" };
  const rows = (...functions: object[]) => lines({ functions }).map((line) => line.split(/ {2,}/));
  expect(rows(one).at(-1)?.slice(0, 2)).toEqual(["copy", "Ready"]);
  const both = rows(one, { ...one, name: "greet", set: "team-b" }, { ...one, name: "image", set: undefined });
  expect(both.map((row) => row.slice(0, 3)).slice(-4)).toEqual([
    ["FUNCTION", "SET", "STATE"],
    ["copy", "team-a", "Ready"],
    ["greet", "team-b", "Ready"],
    ["image", "Ready", "unknown"],
  ]);
});

it("an answer keeps what this version does not know: a reason, and fields for programs", () => {
  const said = {
    name: "copy",
    ready: false,
    reason: "Unheard",
    triggers: [{ name: "t", kind: "Pod", state: "watching" }],
    more: 1,
  };
  expect(statusAnswerSchema.parse({ functions: [said] }).functions).toEqual([said]);
});

it("a function that is ready and has a remark says both", () => {
  const [row] = lines({ functions: [{ name: "copy", ready: true, reason: "Throttled" }] }).slice(-1);
  expect(row).toContain("Ready, Throttled");
});

it("what keeps the runtime from its work stands above the functions", () => {
  const text = lines({
    role: "standby",
    lease: { holder: "watchfire-0" },
    checkpoint: { reason: "WF_CHECKPOINT_WRITE", message: "the disk is full" },
  });
  expect(text).toEqual([
    "standby; watchfire-0 holds the Lease",
    "checkpoint: WF_CHECKPOINT_WRITE: the disk is full",
    "",
    "there is no function",
  ]);
});

it("a source's line has its state and what it leaves out, and its trouble stands below", () => {
  const source = { apiVersion: "v1", kind: "Pod", namespace: "demo", fieldSelector: "metadata.name=a" };
  const text = lines({ sources: [{ ...source, state: "forbidden", message: "may not list", subscribers: 2 }] });
  expect(text.at(-2)).toMatch(/^v1\/Pod +demo +metadata\.name=a +forbidden +2$/);
  expect(text.at(-1)).toBe("  Pod: may not list");
});

it("a long selector of a source is shortened, so that the table stays readable", () => {
  const fieldSelector = Array.from({ length: 8 }, (_, n) => `metadata.name!=watchfire-checkpoint-${n}`).join(",");
  const source = { apiVersion: "v1", kind: "Secret", state: "watching", fieldSelector };
  const row = lines({ sources: [source] }).find((line) => line.startsWith("v1/Secret"));
  expect(row).toMatch(/ {2}metadata\.name!=watchfire-checkpoint-0,\S{1,30}… {2}watching/);
});
