import { type ErrorEntry, system, user } from "./entry.ts";

/** Errors of handlers and executors. */
export const sandboxCodes = {
  WF_SANDBOX_MODE: user(
    "the handler is written for another `delivery.mode` than its manifest has",
    "use `defineReconciler` for `delivery.mode: Reconcile`, and `defineHandler` for any other",
  ),
  WF_SANDBOX_LOAD: user("the handler's module failed while it was loaded", "fix the code at this place"),
  WF_SANDBOX_LOAD_TIME: user(
    "the handler's module did not finish loading in time",
    "do slow work inside the handler, not at the top level of its file",
  ),
  WF_SANDBOX_NOT_LOADED: user("the function is not loaded", "see the function's state in /status"),
  WF_SANDBOX_CPU_BUDGET: user(
    "the handler used more CPU time than an event may",
    "make it cheaper, or raise `resources.cpuPerEvent`; to see a line that is missing from the log, await a timer or a call behind it",
  ),
  WF_SANDBOX_DEADLINE: user(
    "the handler did not finish in time",
    "await only what ends (`ctx.signal` aborts at the deadline), or raise `delivery.timeout`",
  ),
  WF_SANDBOX_MEMORY: user(
    "the handler used more memory than its isolate may",
    "hold less at once, or raise `resources.memory`; to see a line that is missing from the log, await a timer or a call behind it",
  ),
  WF_SANDBOX_OUTPUT: user(
    "the handler exceeded its limit of pending calls, or of their size",
    "await calls in smaller groups, and send less in one call",
  ),
  WF_SANDBOX_KILLED: user(
    "the handler killed its executor process",
    "look for work that no limit can interrupt: huge arrays, BigInts, or strings",
  ),
  WF_SANDBOX_UNREADABLE: system(
    "the handler's output cannot be read",
    "report it with the log lines around it; what the handler logs, counts and throws may be to blame",
  ),
  WF_SANDBOX_BAD_EVENT: system("an event's body is not JSON", "report it with the log lines around it"),
  WF_SANDBOX_CONTAINER_MEMORY: system(
    "the executors' container is at its memory limit",
    "raise the limit of that container, or lower `resources.memory` of the functions",
  ),
  WF_SANDBOX_CONTAINER_SMALL: user(
    "the function's `resources.memory` is above the memory limit of the executors' container",
    "lower `resources.memory`, or raise `executor.resources.limits.memory` in the chart's values",
  ),
  WF_SANDBOX_EXECUTOR: system(
    "an executor process cannot start",
    "check that Node 24 or 26 runs it and that isolated-vm is installed for this platform",
  ),
  WF_SANDBOX_NO_WARDEN: system(
    "no `watchfire executor` is connected, so that no handler can run",
    "check the container `executor` of the pod, or start `watchfire executor --socket PATH` with the same path",
  ),
  WF_SANDBOX_WARDEN_LOST: system(
    "the `watchfire executor` is gone, but processes that its executors started may still run",
    "end all processes of its container and restart both; run it as process 1, from a program that it may not read, or as root",
  ),
  WF_SANDBOX_IMPOSTOR: system(
    "a process in the executors' container poses as a supervisor or as an executor",
    "a handler has left its isolate: check what was deployed last, and update the image",
  ),
} as const satisfies Record<string, ErrorEntry>;
