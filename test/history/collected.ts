import { onTestFinished } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { RunHistory, type RunHistoryParts } from "../../runtime/history/run-history.ts";
import type { EndedRun } from "../../runtime/observe/run-log.ts";

/** A clock that stands until it is moved, in epoch milliseconds. Its timers never fire: tests write batches themselves. */
export class StandingClock {
  at: number;

  constructor(at = Date.parse("2026-01-02T00:00:00Z")) {
    this.at = at;
  }

  now = () => this.at;
  monotonic = () => this.at;
  sinceBoot = () => this.at;
  after = () => ({ cancel: () => {} });
}

/** A history that writes when it is asked something, or flushed. */
export function historyOf(over: Partial<RunHistoryParts> = {}) {
  const warnings: Record<string, unknown>[] = [];
  const dropped: Record<string, number> = {};
  const history = new RunHistory({
    limits: { bytes: 64 * 2 ** 20, ageMs: 7 * 86_400_000 },
    folder: undefined,
    clock: systemClock,
    log: { warn: (fields: object, message: string) => void warnings.push({ ...fields, message }) } as never,
    redact: (_, text) => text,
    frameOf: () => undefined,
    dropped: (reason, count) => {
      dropped[reason] = (dropped[reason] ?? 0) + count;
    },
    ...over,
  });
  history.begin();
  onTestFinished(() => history.close());
  return { history, warnings, dropped };
}

/** An attempt that succeeded. */
export function endedRun(over: Partial<EndedRun> = {}, name = "ada"): EndedRun {
  return {
    function: "greet",
    trigger: "settings",
    id: `settings:uid-${name}/12/Modified`,
    type: "Modified",
    object: { apiVersion: "v1", kind: "ConfigMap", namespace: "team-a", name, uid: `uid-${name}` },
    resourceVersion: "12",
    attempt: 1,
    redelivered: false,
    flags: {},
    causes: undefined,
    batch: undefined,
    receivedAt: 1_767_312_000_000 - 30,
    beganAt: 1_767_312_000_000 - 10,
    endedAt: 1_767_312_000_000,
    outcome: { type: "ok", durationMs: 10 },
    calls: undefined,
    body: undefined,
    oldBody: undefined,
    ...over,
  };
}

export const failure = {
  type: "failed",
  error: {
    name: "TypeError",
    message: "no greeting",
    stack: "TypeError: no greeting\n    at h (functions/greet/handler.ts:2:9)",
  },
  durationMs: 3,
} as const;
