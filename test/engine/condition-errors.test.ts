import { expect, it } from "vitest";
import { ConditionErrors } from "../../runtime/engine/condition-errors.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { change, DispatchFixture, manifest, quiet, trigger } from "./fixture.ts";

const missing = { condition: "running", message: "no such key: status", isUncertain: false };

function errors() {
  const clock = new VirtualClock();
  const metrics = new Metrics();
  const logged: object[] = [];
  const log = { info: () => {}, error: () => {}, warn: (fields: object) => logged.push(fields) };
  return {
    clock,
    metrics,
    logged,
    all: new ConditionErrors({ functionName: "f", clock, observer: metrics.dispatch, log }),
  };
}

it("a condition that fails at each event is counted each time, and logged once a minute with the number of times", async () => {
  const { clock, metrics, logged, all } = errors();
  for (let n = 0; n < 1_000; n++) all.add("pods", missing);
  all.add("pods", { ...missing, condition: "costly", isUncertain: true });
  expect(logged).toMatchObject([
    { function: "f", trigger: "pods", condition: "running", times: 1, delivered: false },
    { condition: "costly", times: 1, delivered: true },
  ]);
  await clock.advance(60_000);
  all.add("pods", missing);
  expect(logged.slice(2)).toMatchObject([{ condition: "running", times: 1_000 }]);
  const text = await metrics.text();
  const count = (condition: string, result: string) =>
    `watchfire_match_condition_errors_total{function="f",trigger="pods",condition="${condition}",result="${result}"}`;
  expect(text).toContain(`${count("running", "error")} 1001`);
  expect(text).toContain(`${count("costly", "limit")} 1`);
});

it("a function's status tells which of its conditions could not be evaluated, how often, and why", async () => {
  const conditions = [
    { name: "named", expression: "object.metadata.name" },
    { name: "fine", expression: "object.spec.v > 0" },
  ];
  const fixture = await (
    await DispatchFixture.open({ manifest: manifest({}, [trigger({ matchConditions: conditions })]) })
  ).listed();
  fixture.subscription.change(change("Added", "a", 5, { spec: { v: 1 } }));
  fixture.subscription.change(change("Added", "b", 6, { spec: { v: 1 } }));
  await quiet(fixture.runner);
  expect(fixture.runner.told).toEqual([]);
  const [status] = fixture.dispatcher.status();
  expect(status?.conditionErrors).toEqual([
    { trigger: "settings", condition: "named", count: 2, message: "yields string, not bool" },
  ]);
});
