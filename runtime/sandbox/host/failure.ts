import { type ErrorCode, errorCodes, type SourceLocation, WatchfireError } from "../../base/errors.ts";
import { clean } from "../../base/wording.ts";
import type { HandlerError, Outcome } from "../../engine/delivery/delivery.ts";
import type { EndReason, Loaded } from "../messages.ts";
import type { StackMapper } from "../positions/stack-mapper.ts";
import { isStackLine } from "../positions/stack-text.ts";
import type { FinishedEvent, GuestError } from "./run-output.ts";

/** A function's limits, as error messages state them. */
interface Limits {
  readonly memoryBytes: number;
  readonly cpuPerEventMs: number;
}

const codes: Readonly<Record<EndReason, ErrorCode>> = {
  cpu: "WF_SANDBOX_CPU_BUDGET",
  deadline: "WF_SANDBOX_DEADLINE",
  memory: "WF_SANDBOX_MEMORY",
  output: "WF_SANDBOX_OUTPUT",
  killed: "WF_SANDBOX_KILLED",
};

/** Describes how an attempt was ended. `said` is the guest's report of the call it was waiting for, or of what it requested. */
function whatHappened(reason: EndReason, said: GuestError | undefined, limits: Limits, timeoutMs: number): string {
  switch (reason) {
    case "cpu":
      return `the handler used more than its ${limits.cpuPerEventMs} ms of CPU time for one event`;
    case "deadline":
      return `the handler was not done after ${timeoutMs} ms${waitOf(said)}`;
    case "memory":
      return `the handler used more than its ${Math.round(limits.memoryBytes / 2 ** 20)} MiB of memory`;
    case "output":
      return said?.message ? clean(said.message) : errorCodes.WF_SANDBOX_OUTPUT.summary;
    case "killed":
      return errorCodes.WF_SANDBOX_KILLED.summary;
  }
}

/**
 * Describes the call that the handler was waiting for. A handler that rejects when its time is over shows the place by its stack.
 */
function waitOf(said: GuestError | undefined): string {
  if (said?.name !== "Waiting") return "";
  return said.message === "" ? "; it was not waiting for a call" : `; it was waiting for ${clean(said.message)}`;
}

/**
 * Returns the error of an attempt that the runtime ended. The guest's stack shows where the code was. Without one the error
 * claims no place, and a line says where the handler begins.
 */
export async function limitError(
  reason: EndReason,
  said: GuestError | undefined,
  mapper: StackMapper,
  limits: Limits,
  timeoutMs: number,
): Promise<HandlerError> {
  const code = codes[reason];
  const message = `${whatHappened(reason, said, limits, timeoutMs)}; ${errorCodes[code].hint}`;
  const stack = await mapper.map(clean(said?.stack ?? ""));
  const frames = stack.split("\n").filter(isStackLine);
  const entry = frames.length > 0 ? undefined : await mapper.entry();
  const places =
    frames.length > 0 ? frames : entry ? [`    its place is not known; the handler begins at ${placeText(entry)}`] : [];
  return { name: "LimitError", message, stack: [`${code}: ${message}`, ...places].join("\n"), code };
}

/**
 * Converts the guest's report of an attempt's end to an outcome. With an error, it resolves once the stack is mapped to the
 * author's files.
 */
export function outcomeOf(
  done: FinishedEvent,
  mapper: StackMapper,
  limits: Limits,
  timeoutMs: number,
  durationMs: number,
): Outcome | Promise<Outcome> {
  switch (done.kind) {
    case "ok":
      return { type: "ok", durationMs };
    case "requeue":
      return { type: "ok", durationMs, requeueAfterMs: done.retryAfterMs ?? 0 };
    case "partial":
      return { type: "ok", durationMs, failed: done.message.split(",").map(Number) };
    case "failed": {
      const retry = done.retryAfterMs === undefined ? {} : { retryAfterMs: done.retryAfterMs };
      return handlerError(done, mapper).then((error) => ({ type: "failed", error, ...retry, durationMs }));
    }
    case "permanent":
      return handlerError(done, mapper).then((error) => ({ type: "permanent", error, durationMs }));
    case "unreadable": {
      const code = "WF_SANDBOX_BAD_EVENT";
      return handlerError(done, mapper).then((error) => ({ type: "permanent", error: { ...error, code }, durationMs }));
    }
    default:
      return limitError(done.kind, done, mapper, limits, timeoutMs).then((error) => ({
        type: "failed",
        error,
        durationMs,
      }));
  }
}

/** Returns the error of an attempt whose handler threw. */
export async function handlerError(done: GuestError, mapper: StackMapper): Promise<HandlerError> {
  const name = clean(done.name);
  const message = clean(done.message);
  return { name, message, stack: (await mapper.map(clean(done.stack))) || `${name}: ${message}` };
}

/**
 * Returns the error of an attempt whose guest sent data that the parent could not read. It contains nothing that the guest sent.
 */
export function unreadableError(fault: unknown): HandlerError {
  const code = "WF_SANDBOX_UNREADABLE";
  const message = `${errorCodes[code].summary}: ${faultText(fault)}; ${errorCodes[code].hint}`;
  return { name: "SandboxError", message, stack: `${code}: ${message}`, code };
}

/** Returns the same for a module's load. */
export const unreadableLoad = (fault: unknown): WatchfireError =>
  new WatchfireError("WF_SANDBOX_LOAD", {
    what: `why the module cannot be loaded cannot be read: ${faultText(fault)}`,
  });

const faultText = (fault: unknown): string => (fault instanceof Error ? clean(fault.message) : "unknown");

/** The fields of the manifest that errors of a load use. */
interface Loading {
  readonly name: string;
  readonly resources: Limits;
  readonly delivery?: { readonly mode?: string };
}

/** Returns why a function cannot be loaded, with the place in the author's file. */
export async function loadError(
  failure: NonNullable<Loaded["failure"]>,
  mapper: StackMapper,
  { name: functionName, resources, delivery }: Loading,
): Promise<WatchfireError> {
  const place = (await mapper.place(failure.stack)) ?? (await mapper.entry());
  const at = place ? { place } : {};
  const { reason } = failure;
  const [name, message] = [clean(failure.name), clean(failure.message)];
  if (reason === "missing" || reason === "handler") {
    return new WatchfireError("WF_BUNDLE_NO_HANDLER", { what: message || "the module has no default export", ...at });
  }
  if (reason === "mode") {
    const mode = delivery?.mode ?? "All";
    const made = mode === "Reconcile" ? "defineHandler" : "defineReconciler";
    const what = `the handler of ${functionName} is made by ${made}, and delivery.mode is ${mode}`;
    return new WatchfireError("WF_SANDBOX_MODE", { what, ...at });
  }
  if (reason === "thrown") {
    return new WatchfireError("WF_SANDBOX_LOAD", { what: `the module's top level threw ${name}: ${message}`, ...at });
  }
  if (reason === "unheard") {
    const what = `the module's top level left an unhandled rejection, ${name}: ${message}`;
    return new WatchfireError("WF_SANDBOX_LOAD", { what, ...at });
  }
  if (reason === "cpu" || reason === "deadline") {
    return new WatchfireError("WF_SANDBOX_LOAD_TIME", { what: "the module's top level does not end", ...at });
  }
  const what = `the module's top level ${reason === "memory" ? `used more than ${Math.round(resources.memoryBytes / 2 ** 20)} MiB of memory` : "took its executor down"}`;
  return new WatchfireError(codes[reason], { what, ...at });
}

const placeText = ({ file, line, column }: SourceLocation): string =>
  [file, line, column].filter((part) => part !== undefined).join(":");
