import { expect, test } from "vitest";
import { systemClock } from "../../../runtime/base/clock.ts";
import { AuditLog, sinceStart } from "../../../runtime/control/access/audit-log.ts";
import { createLog } from "../../../runtime/observe/log.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const pause = { who: "ada", verb: "pause", function: "greet", result: "done" } as const;

/** A log of that level, and its lines. */
function logOf(level: "info" | "fatal") {
  const lines: unknown[] = [];
  return { lines, log: createLog(level, { write: (line: string) => void lines.push(JSON.parse(line)) }) };
}

test("a change is logged whatever the level of the log is", () => {
  const { lines, log } = logOf("fatal");
  log.error({}, "not logged");
  AuditLog.on(log, systemClock).record(pause);
  expect(lines).toMatchObject([{ level: "info", ...pause, msg: "audit" }]);
});

test("refused changes are logged once a second, and others always", async () => {
  const clock = new VirtualClock();
  const { lines, log } = logOf("info");
  const audit = AuditLog.on(log, clock);
  for (let count = 0; count < 3; count++) {
    audit.refused({ who: "bob", verb: "drop" }, "WF_CONTROL_FORBIDDEN");
    audit.record(pause);
  }
  await clock.advance(1_000);
  audit.refused({ who: "eve", verb: "drop" }, "WF_CONTROL_FORBIDDEN");
  expect(lines.map((line) => (line as { who: string }).who)).toEqual(["bob", "ada", "ada", "ada", "eve"]);
});

test("a change that is done is an Event on each function, at most twenty; one that failed is none", () => {
  const reported: string[] = [];
  const { log } = logOf("info");
  const events = {
    report: (name: string, { reason, message }: { reason: string; message: string }) =>
      void reported.push(`${name} ${reason} ${message}`),
  };
  const audit = AuditLog.on(log, systemClock, events);
  audit.record({ ...pause, reason: "INC-1" });
  audit.record({ ...pause, result: "WF_RUNTIME_NO_FUNCTION" });
  audit.record({ ...pause, verb: "something-else" });
  expect(reported).toEqual(["greet Paused ada paused greet: INC-1"]);
  const { function: _, ...several } = pause;
  audit.record({ ...several, verb: "deploy", functions: Array.from({ length: 30 }, (_, index) => `f${index}`) });
  expect(reported).toHaveLength(21);
});

/** A store as the history is one. */
function storeOf() {
  const rows: { number: number; line: string }[] = [];
  const keepChange = (number: number, line: string) => void rows.unshift({ number, line });
  return { rows, isOn: true, keepChange, keptChanges: async () => rows };
}

test("changes are kept across a restart, newest first, without what was asked for", async () => {
  const clock = new VirtualClock();
  const store = storeOf();
  const audit = AuditLog.on(logOf("info").log, clock, undefined, store);
  audit.record({ ...pause, reason: "INC-1" });
  audit.record({ who: "bob", verb: "apply", asked: { password: "hunter2" }, result: "done" });
  const verbs = async (of: AuditLog, name?: string) => (await of.recent(name)).map(({ verb }) => verb);
  expect(await verbs(audit)).toEqual(["apply", "pause"]);

  await clock.advance(1_000);
  const next = AuditLog.on(logOf("info").log, clock, undefined, store);
  next.record({ ...pause, verb: "resume" });
  next.record({ who: "ci", verb: "deploy", functions: ["greet"], result: sinceStart });
  expect(await verbs(next)).toEqual(["deploy", "resume", "apply", "pause"]);
  expect(await verbs(next, "greet")).toEqual(["deploy", "resume", "pause"]);
  expect((await next.recent("greet")).at(-1)).toMatchObject({ who: "ada", reason: "INC-1" });
  expect(JSON.stringify(store.rows)).not.toContain("hunter2");
  expect(store.rows, "each start logs the deployment again").toHaveLength(3);
});

test("without a store the last 200 changes are in memory, and a kept line that cannot be read is left out", async () => {
  const audit = AuditLog.on(logOf("info").log, systemClock);
  for (let count = 0; count < 250; count++) audit.record({ ...pause, reason: String(count) });
  const recent = await audit.recent();
  expect(recent).toHaveLength(200);
  expect(recent[0]?.reason).toBe("249");
  expect(audit.isKept).toBe(false);
  const damaged = { ...storeOf(), keptChanges: async () => [{ number: 1, line: "{" }] };
  expect(await AuditLog.on(logOf("info").log, systemClock, undefined, damaged).recent()).toEqual([]);
});
