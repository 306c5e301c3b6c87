import { expect, test } from "vitest";
import type { Delivery, DeliveryListener, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { loggedRunner } from "../../runtime/observe/run-log.ts";
import { endedRun, historyOf, StandingClock } from "./collected.ts";

/** A runner with a history, whose attempts end at once. */
function collecting() {
  const { history, dropped } = historyOf({ clock: new StandingClock() });
  const ended = { begins: () => {}, ended: () => {} };
  const inner = (outcome: Outcome) => ({
    give: (_: Delivery, listener: DeliveryListener) => listener.ended(outcome),
    recall: () => {},
  });
  const log = { isLevelEnabled: () => false, warn: () => {} } as never;
  const redactor = { redact: (_: string, text: string) => text } as never;
  const kept = { collector: history.runs, clock: new StandingClock() };
  const run = (over: Partial<Delivery>, outcome: Outcome = { type: "ok", durationMs: 1 }) =>
    loggedRunner(inner(outcome), log, redactor, "debug", kept).give(
      { ...endedRun(), body: Buffer.from("{}"), ...over } as never,
      ended,
    );
  return { history, dropped, run };
}

test("a fast function's quiet attempts beyond its share are only counted, and others are taken", async () => {
  const { history, dropped, run } = collecting();
  for (let n = 0; n < 1_000; n++) run({ function: "busy" });
  run({ function: "calm" });
  run({ function: "busy", redelivered: true });
  run({ function: "busy" }, { type: "permanent", error: { name: "E", message: "m", stack: "" }, durationMs: 1 });
  // It had not begun.
  run({ function: "busy" }, { type: "interrupted" });
  expect(history.runs.ended).toHaveLength(250 + 3);
  await history.flush();
  expect(dropped.quiet).toBe(750 + 1);
  run({ function: "busy" });
  expect(history.runs.ended).toHaveLength(1);
});
