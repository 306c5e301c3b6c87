import { type ErrorCode, errorCodes } from "../base/errors.ts";
import type { FunctionReport } from "../control/function-status/function-report.ts";
import type { StatusReason } from "../control/function-status/reason.ts";
import type { Attention } from "./schemas.ts";

/** The part of the status that is looked at. */
export interface AttentionParts {
  readonly checkpoint?: NamedTrouble | undefined;
  readonly deployment?: NamedTrouble | undefined;
  readonly history?: NamedTrouble | undefined;
  readonly sandbox: Partial<NamedTrouble>;
  readonly functions: readonly FunctionReport[];
}

interface NamedTrouble {
  readonly reason: string;
  readonly message: string;
}

/** Remedies by a function's reason; used if its error code has no hint. */
const todos: { readonly [reason in StatusReason]?: string } = {
  Forbidden: "Grant what is missing: `watchfire rbac` prints the rules.",
  KindMissing: "Install the kind's CustomResourceDefinition, or correct `kind` and `apiVersion` in the manifest.",
  Unreachable: "Check the network to the API server. Nothing is lost: it continues where it stopped.",
  Degraded: "Look at the source's message; the watch is tried again every few minutes.",
  Backlogged: "Look at how long its runs take. Raise `delivery.concurrency`, or make the handler faster.",
  Throttled: "Narrow its selectors, so that it reads less, or simplify its conditions.",
  KeysFull: "Look for keys without an object: its `key` expression may name objects that do not exist.",
  CacheFull: "Narrow its `reads`, or raise `--cache-limit`.",
  ExecutorMissing: "Look at the runtime's log: it says why no executor can be started.",
  ExecutorTooSmall: "Lower its `resources.memory`, or give the executors' container more.",
  BuildFailed: "Fix the file at the place that is named and save it.",
  LoadFailed: "Fix the handler and save it: its module failed while it was loaded.",
  ManifestRefused: "Correct the manifest at the place that is named.",
  EnvironmentMissing: "Create the Secret or ConfigMap that its `env` names.",
  ChangeRefused: "Correct the change. The version before it runs on.",
  CanaryAborted: "Correct the new code. `watchfire abort` ends the canary, and the current code runs on.",
  CheckpointFailing: "Look at the volume or the store of the checkpoints: is it full, or away?",
  Parked: "Look at its last runs: its handler ends executors.",
  Quarantined: "Look at its last runs: its handler ended an executor.",
};

/** Reasons that pass by themselves and are no news. */
const passing: ReadonlySet<string> = new Set<StatusReason>(["Starting", "CatchingUp", "Standby"]);

/** Lists what needs a person: what runs nothing first, then functions that do not run, then the rest. */
export function attentionOf(status: AttentionParts): Attention[] {
  const all = [
    ...wholeTroubles(status),
    ...status.functions.flatMap(standing),
    ...status.functions.flatMap(letters),
    ...status.functions.flatMap(blocked),
    ...status.functions.flatMap(conditions),
  ];
  return [...all.filter(({ severity }) => severity === "bad"), ...all.filter(({ severity }) => severity === "warn")];
}

function wholeTroubles({ checkpoint, deployment, history, sandbox }: AttentionParts): Attention[] {
  const { reason, message } = sandbox;
  const executors = reason === undefined || message === undefined ? undefined : { reason, message };
  const found = [
    ["bad", "Progress cannot be saved, so no handler starts", checkpoint],
    ["bad", "No executor can be started, so no handler runs", executors],
    ["bad", "What is deployed is not what runs", deployment],
    ["warn", "The history of runs is off, so older runs are not shown", history],
  ] as const;
  return found.flatMap(([severity, title, trouble]) =>
    trouble ? [{ severity, title, text: trouble.message, todo: hintOf(trouble.reason) ?? "See the log." }] : [],
  );
}

function standing(report: FunctionReport): Attention[] {
  const { name, ready, reason, message, code, paused } = report;
  const href = functionHref(name);
  if (paused === "command" || paused === "set") {
    const how = paused === "set" ? "Set `spec.paused` of its FunctionSet to false" : "Resume it on its page";
    const todo = `${how} once you have found out why it was paused. Events wait meanwhile.`;
    return [{ severity: "warn", title: `${name} is paused`, text: message ?? "No handler starts.", todo, href }];
  }
  if (reason === "Suspended") return suspended(report);
  if (reason === undefined || reason === "Paused" || passing.has(reason)) return [];
  const todo = hintOf(code) ?? todos[reason] ?? "Look at its page and at the log.";
  const title = ready ? `${name} runs, but: ${reason}` : `${name} does not run: ${reason}`;
  return [{ severity: ready ? "warn" : "bad", title, text: message ?? reason, todo, href }];
}

/** A function that was removed is no fault, but what waits for it is dropped in the end. */
function suspended({ name, message = "", spilled = 0 }: FunctionReport): Attention[] {
  if (spilled === 0) return [];
  const title = `${name} is gone, and ${spilled === 1 ? "an event waits" : `${spilled} events wait`} for it`;
  const todo = "Put the function back to have it delivered. If it is gone for good, there is nothing to do.";
  return [{ severity: "warn", title, text: message, todo, href: functionHref(name) }];
}

function letters({ name, deadLetters = 0, deadLettersWithoutBody = 0 }: FunctionReport): Attention[] {
  if (deadLetters === 0) return [];
  const lost =
    deadLettersWithoutBody === 0 ? "" : ` Of ${deadLettersWithoutBody} the body is gone: they can only be dropped.`;
  return [
    {
      severity: "warn",
      title: `${name} has ${deadLetters === 1 ? "a dead letter" : `${deadLetters} dead letters`}`,
      text: `Events that its handler failed with and that were given up.${lost}`,
      todo: "Find the error, fix the handler, then replay them.",
      href: `/dead-letters?function=${encodeURIComponent(name)}`,
    },
  ];
}

function blocked({ name, blockedLanes = 0 }: FunctionReport): Attention[] {
  if (blockedLanes === 0) return [];
  return [
    {
      severity: "bad",
      title: `${name}: ${blockedLanes === 1 ? "an object is" : `${blockedLanes} objects are`} blocked`,
      text: "Its handler failed for good, and `onFailure: Block` keeps the object's later events waiting.",
      todo: "Fix the handler: blocked events are tried again when the function is loaded.",
      href: functionHref(name),
    },
  ];
}

function conditions({ name, triggers }: FunctionReport): Attention[] {
  return triggers.flatMap(({ name: trigger, conditionErrors = [] }) =>
    conditionErrors.map(({ condition, count, message }) => ({
      severity: "warn" as const,
      title: `${name}: condition ${condition} of ${trigger} could not be evaluated ${count} times`,
      text: message,
      todo: "Guard the field with `has()` in the expression: an error counts as false.",
      href: functionHref(name),
    })),
  );
}

const functionHref = (name: string): string => `/functions/${encodeURIComponent(name)}`;

/** The registry's hint for a code, as a sentence. */
function hintOf(code: string | undefined): string | undefined {
  if (code === undefined || !Object.hasOwn(errorCodes, code)) return undefined;
  const { hint } = errorCodes[code as ErrorCode];
  return `${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`;
}
