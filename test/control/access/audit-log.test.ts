import { expect, test } from "vitest";
import { systemClock } from "../../../runtime/base/clock.ts";
import { AuditLog } from "../../../runtime/control/access/audit-log.ts";
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
