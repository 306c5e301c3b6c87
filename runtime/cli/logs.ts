import { readEnvironment } from "../base/config.ts";
import { consoleLine } from "../observe/console-log.ts";
import { logAnswerSchema } from "../observe/control-api.ts";
import { command } from "./command.ts";
import { functionOperand, functionPath, runningRuntime, runtimeOptions, tellElsewhere } from "./running-runtime.ts";
import { stopSignal, untilAborted } from "./signals.ts";

/** How long one question waits for a line, in seconds: the endpoints let go of a connection that is silent for 15. */
const waitSeconds = 10;

export const logs = command({
  name: "logs",
  summary: "prints a function's last log lines, which its runtime has in memory: 256 KiB at most",
  operands: "FUNCTION",
  options: {
    ...runtimeOptions,
    follow: { summary: "goes on with each line that comes, until it is stopped" },
    json: { summary: "the lines as the log has them" },
  },
  async run(invocation) {
    const { operands, given } = invocation;
    const name = functionOperand("logs", operands);
    const runtime = runningRuntime(invocation);
    const show = given.has("json") ? (line: string) => line : (line: string) => consoleLine(line);
    let last = 0;
    const more = async (wait: number) => {
      const path = functionPath(name, `logs?after=${last}&wait=${wait}`);
      const answer = await runtime.ask(logAnswerSchema, path);
      for (const { line } of answer.lines) process.stdout.write(`${show(line)}\n`);
      last = answer.lines.at(-1)?.number ?? last;
      return answer;
    };
    tellElsewhere(await more(0));
    if (!given.has("follow")) return 0;
    const stop = stopSignal(readEnvironment());
    const stopped = untilAborted(stop);
    while (!stop.aborted) await Promise.race([more(waitSeconds), stopped]);
    return 0;
  },
});
