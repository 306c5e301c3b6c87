import { pauseAnswerSchema } from "../observe/control-api.ts";
import { command } from "./command.ts";
import { functionOperand, functionPath, reasonOption, runtimeOptions, withRuntime } from "./running-runtime.ts";

const commandOf = (name: "pause" | "resume", summary: string) =>
  command({
    name,
    summary,
    operands: "FUNCTION",
    options: { ...runtimeOptions, ...reasonOption },
    async run(invocation) {
      const path = functionPath(functionOperand(name, invocation.operands), name);
      const { says } = await withRuntime(invocation, (runtime) => runtime.ask(pauseAnswerSchema, path, {}));
      process.stdout.write(`${says}\n`);
      return 0;
    },
  });

export const pause = commandOf("pause", "pauses a function: no handler starts, and events wait until it is resumed");

export const resume = commandOf("resume", "resumes a paused function");
