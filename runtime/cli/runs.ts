import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { table } from "../dev/table.ts";
import { type RunsAnswer, runFiltersSchema, runsAnswerSchema } from "../observe/control-api.ts";
import { command } from "./command.ts";
import { readDuration } from "./operand.ts";
import { output } from "./options.ts";
import { functionOperand, functionPath, runtimeOptions, tellElsewhere, withRuntime } from "./running-runtime.ts";

const outcomes = runFiltersSchema.shape.outcome.unwrap().options;

export const runs = command({
  name: "runs",
  summary:
    "lists the attempts of a function, or of all, newest first: how each ended, how long it waited and took, and its event's ID",
  operands: "[FUNCTION]",
  options: {
    ...runtimeOptions,
    outcome: { value: "OUTCOME", choices: outcomes, summary: "only attempts with this outcome" },
    object: { value: "TEXT", summary: "only attempts at objects whose NAMESPACE/NAME contains this" },
    trigger: { value: "NAME", summary: "only attempts of this trigger" },
    since: { value: "DURATION", summary: "only attempts that ended in the last DURATION, such as 10m" },
    before: { value: "DURATION", summary: "only attempts that ended more than DURATION ago" },
    limit: { value: "N", summary: "the number of attempts, at most 1000", default: "200" },
    output: output("json"),
  },
  async run(invocation) {
    const { operands, options } = invocation;
    const name = operands.length === 0 ? undefined : functionOperand("runs", operands);
    const path = name === undefined ? "functions/runs" : functionPath(name, "runs");
    const query = queryOf(options, Date.now());
    const answer = await withRuntime(invocation, (runtime) => runtime.ask(runsAnswerSchema, `${path}?${query}`));
    const text = options.output === "json" ? JSON.stringify(answer, null, 2) : render(name, answer);
    process.stdout.write(`${text}\n`);
    tellElsewhere(answer);
    return 0;
  },
});

interface Filters {
  readonly outcome: string | undefined;
  readonly object: string | undefined;
  readonly trigger: string | undefined;
  readonly since: string | undefined;
  readonly before: string | undefined;
  readonly limit: string;
}

/** `now`: epoch milliseconds. @throws WatchfireError WF_CLI_USAGE */
function queryOf({ since, before, limit, ...rest }: Filters, now: number): URLSearchParams {
  if (!/^[1-9]\d{0,3}$/.test(limit) || Number(limit) > 1000) {
    throw new WatchfireError("WF_CLI_USAGE", { what: "--limit takes 1 to 1000", actual: limit });
  }
  const timeOf = (option: string, ago: string | undefined) =>
    ago === undefined ? undefined : new Date(now - readDuration(option, ago)).toISOString();
  const { outcome, object, trigger } = rest;
  const asked = {
    outcome,
    object,
    trigger,
    since: timeOf("--since", since),
    before: timeOf("--before", before),
    limit,
  };
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(asked)) if (value !== undefined) query.set(key, value);
  return query;
}

function render(name: string | undefined, { runs }: RunsAnswer): string {
  if (runs.length === 0) return `no attempt ${name === undefined ? "" : `of function ${clean(name)} `}is on record`;
  const isOfAll = name === undefined;
  return table(
    [
      "ENDED AT",
      ...(isOfAll ? ["FUNCTION"] : []),
      ...["EVENT", "OBJECT", "ATTEMPT", "OUTCOME", "WAITED", "TOOK", "CALLS", "ID", "ERROR"],
    ],
    runs.map((run) => [
      run.at,
      ...(isOfAll ? [run.function] : []),
      run.synthetic === undefined ? run.type : `${run.type} (${run.synthetic || "synthetic"})`,
      `${run.kind} ${run.object}`,
      `${run.attempt}${run.redelivered ? " (redelivered)" : ""}`,
      run.outcome,
      run.waitedMs === undefined ? "" : `${Math.round(run.waitedMs)} ms`,
      `${Math.round(run.durationMs)} ms`,
      run.calls === undefined ? "" : String(run.calls),
      run.id,
      run.error?.split("\n", 1)[0] ?? "",
    ]),
  ).join("\n");
}
