import type { FunctionStatus } from "../../runtime/engine/function-dispatch.ts";

/** The dispatcher's status of function `f` after it has handled all events. */
export const counts: FunctionStatus = {
  function: "f",
  ready: true,
  lagSeconds: 0,
  dueSeconds: 0,
  queued: 0,
  inFlight: 0,
  spilled: 0,
  requeued: 0,
  full: false,
  overShareSeconds: undefined,
  parentSeconds: new Map(),
  blockedLanes: 0,
  lastEvent: undefined,
  deadLetters: 0,
  letterStock: { count: 0, withoutBody: 0, bytes: 0, lettersDropped: 0, bodiesDropped: 0 },
  failures: 0,
  conditionErrors: [],
  filtered: [],
  schedules: [],
  subscriptions: [],
};
