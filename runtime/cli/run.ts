import { redeliveriesSchema } from "../observe/control-api.ts";
import { command } from "./command.ts";
import { functionOperand, functionPath, reasonOption, runtimeOptions, withRuntime } from "./running-runtime.ts";

export const run = command({
  name: "run",
  summary: "runs a function's schedule now; its next time does not change",
  operands: "FUNCTION",
  options: {
    ...runtimeOptions,
    ...reasonOption,
    trigger: { value: "NAME", summary: "this schedule, if the function has several" },
  },
  async run(invocation) {
    const name = functionOperand("run", invocation.operands);
    const { trigger } = invocation.options;
    const question = { schedule: true, ...(trigger !== undefined && { trigger }) };
    const path = functionPath(name, "redeliver");
    const { told } = await withRuntime(invocation, (runtime) => runtime.ask(redeliveriesSchema, path, question));
    const says =
      told > 0
        ? `${name} runs now; \`watchfire runs ${name}\` shows how it ended`
        : `${name} has a run that waits or is in progress: nothing was added`;
    process.stdout.write(`${says}\n`);
    return told > 0 ? 0 : 1;
  },
});
