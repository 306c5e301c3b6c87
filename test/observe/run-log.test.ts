import { pino } from "pino";
import { expect, test } from "vitest";
import { Redactor } from "../../runtime/access/redactor.ts";
import { type Delivery, run } from "../../runtime/engine/delivery/delivery.ts";
import { loggedRunner } from "../../runtime/observe/run-log.ts";
import { promisedRunner } from "../engine/promised-runner.ts";

const delivery: Delivery = {
  function: "f",
  trigger: "apps",
  id: "a/1",
  type: "Modified",
  object: { apiVersion: "v1", kind: "ConfigMap", namespace: "demo", name: "a", uid: "u" },
  resourceVersion: "1",
  attempt: 1,
  redelivered: false,
  flags: {},
  body: Buffer.from("{}"),
  timeoutMs: 1000,
};

const deletion: Delivery = { ...delivery, type: "Deleted" };

test.each<[what: string, given: Delivery, reason: string | undefined]>([
  ["a live one says both, because the API server sends the same for both", deletion, "deleted, or no longer selected"],
  ["of a trigger without a selector there is one reason", { ...deletion, trigger: "all" }, undefined],
  ["a derived one has its own", { ...deletion, flags: { synthetic: true, reason: "relist" } }, "relist"],
  ["a reconciler's run is no deletion", { ...deletion, causes: [] }, undefined],
])("why an object of a trigger with a selector is Deleted: %s", async (_, given, reason) => {
  const lines: { reason?: string }[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const runner = promisedRunner(() => ({ type: "ok", durationMs: 1 }));
  const isSelective = (name: string, trigger: string) => name === "f" && trigger === "apps";
  await run(loggedRunner(runner, log, new Redactor(), "info", undefined, undefined, isSelective), given);
  expect(lines.map((line) => line.reason)).toEqual([reason]);
});

test.each([
  ["an event by its type", delivery, "Modified"],
  ["a reconciler's run as that, whatever woke it", { ...delivery, causes: [] }, "Reconcile"],
])("the log names %s", async (_, given, type) => {
  const lines: { type: string }[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const runner = promisedRunner(() => ({ type: "ok", durationMs: 1 }));
  await run(loggedRunner(runner, log, new Redactor(), "info"), given);
  expect(lines).toMatchObject([{ type, object: "v1/ConfigMap demo/a" }]);
});
