import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { clean } from "../base/wording.ts";
import { statusAnswerSchema } from "../control/status-answer.ts";
import { table } from "../dev/table.ts";
import { scheduleKind } from "../manifest/schedule.ts";
import {
  type ExplainQuestion,
  type Explanation,
  explanationSchema,
  type TriggerExplanation,
} from "../observe/explanation.ts";
import { command } from "./command.ts";
import { output } from "./options.ts";
import { reportElsewhere, runtimeOptions, withRuntime } from "./running-runtime.ts";
import type { RuntimeClient } from "./runtime-client.ts";

const options = {
  ...runtimeOptions,
  trigger: { value: "NAME", summary: "only this trigger's answer" },
  output: output("json"),
} as const;

export const explain = command({
  name: "explain",
  summary:
    "shows why a function did not run for an object (NAMESPACE/NAME, or NAME if the kind has no namespace), or when its schedules run",
  operands: "FUNCTION [OBJECT]",
  options,
  async run(invocation) {
    const {
      operands,
      options: { trigger, output: format },
    } = invocation;
    const asked = operands.length === 1 ? undefined : [questionOf(operands)];
    const answers: Explanation[] = [];
    await withRuntime(invocation, async (runtime) => {
      for (const { function: name, ...object } of asked ?? (await schedulesOf(runtime, operands[0] ?? ""))) {
        const path = `explain/${encodeURIComponent(name)}?${new URLSearchParams(object)}`;
        answers.push(only(await runtime.ask(explanationSchema, path), trigger));
      }
    });
    const text = answers.map((each) => (format === "json" ? JSON.stringify(each, null, 2) : render(each).join("\n")));
    process.stdout.write(`${text.join("\n")}\n`);
    for (const answer of answers) reportElsewhere(answer);
    return 0;
  },
});

/** Returns a question for each schedule of a function. @throws WatchfireError WF_CLI_USAGE if it has no schedule */
async function schedulesOf(runtime: RuntimeClient, name: string): Promise<ExplainQuestion[]> {
  const { functions } = await runtime.ask(statusAnswerSchema, "status");
  const triggers = functions.find((each) => each.name === name)?.triggers ?? [];
  const schedules = triggers.filter(({ kind }) => kind === scheduleKind.kind);
  if (schedules.length === 0) questionOf([name]);
  return schedules.map((each) => ({ function: name, namespace: "", name: each.name }));
}

function questionOf(operands: readonly string[]): ExplainQuestion {
  const [name, object, ...more] = operands;
  const parts = object?.split("/") ?? [];
  const isObject = parts.length <= 2 && parts.every((part) => part !== "");
  if (name === undefined || object === undefined || more.length > 0 || !isObject) {
    throw new WatchfireError("WF_CLI_USAGE", {
      what: "explain takes a FUNCTION and an OBJECT, which is NAMESPACE/NAME, or NAME where the kind has no namespace",
      actual: operands.join(" ") || undefined,
      hint: "such as `watchfire explain greet default/ada`",
    });
  }
  return { function: name, namespace: parts.length === 2 ? (parts[0] ?? "") : "", name: parts.at(-1) ?? "" };
}

/** @throws WatchfireError WF_CLI_USAGE for a trigger that the function does not have */
function only(answer: Explanation, trigger: string | undefined): Explanation {
  if (trigger === undefined || answer.triggers.length === 0) return answer;
  const triggers = answer.triggers.filter((each) => each.trigger === trigger);
  if (triggers.length > 0) return { ...answer, triggers };
  const names = answer.triggers.map((each) => each.trigger);
  throw new WatchfireError("WF_CLI_USAGE", {
    what: `function ${answer.function.name} has no trigger of this name`,
    actual: trigger,
    hint: `did you mean --trigger ${suggest(trigger, names) ?? names[0]}?`,
  });
}

function render({ function: { name, ready, reason, message }, object, triggers }: Explanation): string[] {
  const said = reason === undefined ? "" : `, ${reason}: ${message}`;
  const lines = [clean(`function ${name} is ${ready ? "ready" : "not ready"}${said}`)];
  const of = object.namespace === "" ? object.name : `${object.namespace}/${object.name}`;
  for (const trigger of triggers) lines.push("", ...renderTrigger(trigger, of));
  return lines;
}

const marks = { yes: "yes", no: "NO", unknown: "-" } as const;

function renderTrigger({ trigger, kind, why, next, checks, filtered, runs }: TriggerExplanation, of: string): string[] {
  const tables = [
    table(
      ["CHECK", "PASSES", "SAYS"],
      checks.map(({ name, passes, says }) => [name, marks[passes], says]),
    ),
    table(
      ["FILTERED AT", "EVENT", "VERSION", "BECAUSE"],
      filtered.map(({ at, type, resourceVersion, because }) => [at, type, resourceVersion, because]),
    ),
    table(
      ["RAN AT", "EVENT", "VERSION", "ATTEMPT", "OUTCOME", "TOOK", "ERROR"],
      runs.map(({ at, type, resourceVersion, attempt, outcome, durationMs, error = "" }) => [
        at,
        type,
        resourceVersion,
        String(attempt),
        outcome,
        `${Math.round(durationMs)} ms`,
        error.split("\n", 1)[0] ?? "",
      ]),
    ),
  ].filter((rows) => rows.length > 1);
  return [
    ...[`trigger ${trigger}: ${kind} ${of}`, `  why: ${why}`, ...(next === undefined ? [] : [`  next: ${next}`])].map(
      clean,
    ),
    ...tables.flatMap((rows) => ["", ...rows.map((row) => `  ${row}`)]),
  ];
}
