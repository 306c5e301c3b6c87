import { z } from "zod";
import { readEnvironment } from "../base/config.ts";
import { consoleLine } from "../observe/console-log.ts";
import { logAnswerSchema } from "../observe/control-api.ts";
import { command } from "./command.ts";
import { readDuration } from "./operand.ts";
import { output } from "./options.ts";
import { functionOperand, functionPath, runtimeOptions, tellElsewhere, withRuntime } from "./running-runtime.ts";
import { stopSignal, untilAborted } from "./signals.ts";

/** How long one request waits for a line, in seconds. The endpoints close a connection that is silent for 15. */
const waitSeconds = 10;

/** From the least to the most important. */
const levels: readonly string[] = ["debug", "info", "warn", "error"];

export const logs = command({
  name: "logs",
  summary:
    "prints the last log lines of a function, or of all: 5,000 of the history, and 256 KiB of each function in memory",
  operands: "[FUNCTION]",
  options: {
    ...runtimeOptions,
    follow: { summary: "continues with new lines until it is stopped" },
    since: { value: "DURATION", summary: "only lines of the last DURATION, such as 10m" },
    level: { value: "LEVEL", choices: levels, summary: "only lines of this level and above", default: "debug" },
    output: output("json"),
  },
  async run(invocation) {
    const { operands, given, options } = invocation;
    const path = operands.length === 0 ? "functions/logs" : functionPath(functionOperand("logs", operands), "logs");
    const ago = options.since === undefined ? undefined : readDuration("--since", options.since);
    const from = ago === undefined ? undefined : Date.now() - ago;
    const since = from === undefined ? "" : `&since=${new Date(from).toISOString()}`;
    const isWanted = wantedBy(options.level, from);
    const show = options.output === "json" ? (line: string) => line : (line: string) => consoleLine(line);
    return withRuntime(invocation, async (runtime) => {
      let last = 0;
      const more = async (wait: number) => {
        const answer = await runtime.ask(logAnswerSchema, `${path}?after=${last}&wait=${wait}${since}`);
        for (const { line } of answer.lines) if (isWanted(line)) process.stdout.write(`${show(line)}\n`);
        last = answer.lines.at(-1)?.number ?? last;
        return answer;
      };
      tellElsewhere(await more(0));
      if (!given.has("follow")) return 0;
      const stop = stopSignal(readEnvironment());
      const stopped = untilAborted(stop);
      while (!stop.aborted) await Promise.race([more(waitSeconds), stopped]);
      return 0;
    });
  },
});

const recordSchema = z.object({ level: z.string(), time: z.union([z.string(), z.number()]) });

/** Returns the filter of printed lines. `from`: epoch milliseconds. */
function wantedBy(level: string, from: number | undefined): (line: string) => boolean {
  const least = levels.indexOf(level);
  if (least === 0 && from === undefined) return () => true;
  return (line) => {
    const { level, time } = recordSchema.parse(JSON.parse(line));
    // An unknown level counts as more important than an error.
    const rank = levels.indexOf(level);
    return (rank < 0 || rank >= least) && (from === undefined || new Date(time).getTime() >= from);
  };
}
