import { expect, test } from "vitest";
import { Redactor } from "../../runtime/access/redactor.ts";
import { guestOutput } from "../../runtime/observe/guest-output.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { LogLimit } from "../../runtime/observe/log-limit.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { VirtualClock } from "../virtual-clock.ts";

interface Line {
  readonly msg: string;
  readonly function: string;
  readonly lines?: number;
}

/** A log with handlers that write to it. */
function fixture() {
  const written: Line[] = [];
  const clock = new VirtualClock();
  const metrics = new Metrics();
  const log = createLog("info", { write: (line: string) => void written.push(JSON.parse(line) as Line) });
  const limit = new LogLimit(clock);
  const output = guestOutput(log, metrics.user, new Redactor(), limit, metrics.lineDropped);
  const write = (name: string, count: number, text = "a line") => {
    const object = { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "b", uid: "c" };
    const caller = { function: name, trigger: "t", id: "1", attempt: 1, object } as never;
    for (let at = 0; at < count; at++)
      if (output.admits?.(caller, "log", text.length)) output.log(caller, "info", text, {});
  };
  const of = (name: string) => written.filter((line) => line.function === name && line.lines === undefined).length;
  return { written, clock, metrics, write, of };
}

test("a function writes a thousand lines at once and 200 a second after that; its neighbour's are all written", async () => {
  const { clock, write, of } = fixture();
  write("flood", 50_000);
  write("calm", 500);
  expect([of("flood"), of("calm")]).toEqual([1000, 500]);
  await clock.advance(2000);
  write("flood", 50_000);
  expect(of("flood")).toBe(1400);
});

test("long lines are held to a rate of bytes: a megabyte at once", () => {
  const { write, of } = fixture();
  write("flood", 100, "x".repeat(60_000));
  expect(of("flood")).toBe(17);
});

test("what is dropped is counted, and said once in ten seconds", async () => {
  const { clock, write, written, metrics } = fixture();
  write("flood", 1500);
  const told = () => written.flatMap(({ lines }) => lines ?? []);
  expect(told()).toEqual([1]);
  await clock.advance(10_000);
  write("flood", 1);
  expect(told()).toEqual([1, 499]);
  expect(await metrics.text()).toContain('watchfire_log_lines_dropped_total{function="flood",reason="rate"} 500');
});
