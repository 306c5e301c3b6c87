import { clean } from "../base/wording.ts";
import { table } from "../dev/table.ts";
import { type RunsAnswer, runsAnswerSchema } from "../observe/control-api.ts";
import { command } from "./command.ts";
import { output } from "./options.ts";
import { functionOperand, functionPath, runtimeOptions, tellElsewhere, withRuntime } from "./running-runtime.ts";

export const runs = command({
  name: "runs",
  summary: "lists a function's last attempts, newest first: how each ended, how long it took, and its event's ID",
  operands: "FUNCTION",
  options: { ...runtimeOptions, output: output("json") },
  async run(invocation) {
    const name = functionOperand("runs", invocation.operands);
    const path = functionPath(name, "runs");
    const answer = await withRuntime(invocation, (runtime) => runtime.ask(runsAnswerSchema, path));
    const text = invocation.options.output === "json" ? JSON.stringify(answer, null, 2) : render(name, answer);
    process.stdout.write(`${text}\n`);
    tellElsewhere(answer);
    return 0;
  },
});

function render(name: string, { runs }: RunsAnswer): string {
  if (runs.length === 0) return `no attempt of function ${clean(name)} has ended since the runtime began`;
  return table(
    ["ENDED AT", "EVENT", "OBJECT", "ATTEMPT", "OUTCOME", "TOOK", "ID", "ERROR"],
    runs.map(({ at, type, kind, object, attempt, outcome, durationMs, id, error = "" }) => [
      at,
      type,
      `${kind} ${object}`,
      String(attempt),
      outcome,
      `${Math.round(durationMs)} ms`,
      id,
      error.split("\n", 1)[0] ?? "",
    ]),
  ).join("\n");
}
