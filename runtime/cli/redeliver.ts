import { WatchfireError } from "../base/errors.ts";
import { type Redeliveries, type RedeliverQuestion, redeliveriesSchema } from "../observe/control-api.ts";
import { command, type Invocation } from "./command.ts";
import { readObject } from "./operand.ts";
import {
  functionOperand,
  functionPath,
  reasonOption,
  runtimeOptions,
  tellElsewhere,
  withRuntime,
} from "./running-runtime.ts";

const options = {
  ...runtimeOptions,
  ...reasonOption,
  object: {
    value: "NAME",
    summary: "this object in its current state: NAMESPACE/NAME, or NAME if the kind has no namespace",
  },
  all: { summary: "every object that its triggers select, in its current state" },
  run: { value: "ID", summary: "the event of this run; `watchfire runs` and the log have its ID" },
  trigger: { value: "NAME", summary: "for --object and --all: only by this trigger" },
} as const;

export const redeliver = command({
  name: "redeliver",
  summary: "delivers objects to a function again, flagged as redelivered, one at a time for each object",
  operands: "FUNCTION",
  options,
  async run(invocation) {
    const name = functionOperand("redeliver", invocation.operands);
    const question = questionOf(invocation);
    const answer = await withRuntime(invocation, async (runtime) => {
      const ask = (body: RedeliverQuestion) => runtime.ask(redeliveriesSchema, functionPath(name, "redeliver"), body);
      let answer = await ask(question);
      while (answer.errand !== undefined) answer = await ask({ errand: answer.errand });
      return answer;
    });
    process.stdout.write(`${render(answer)}\n`);
    tellElsewhere(answer);
    const isInVain = answer.told === 0 && answer.left.some(({ why }) => why === "filtered");
    return isInVain || answer.left.some(({ why }) => why === "full") ? 1 : 0;
  },
});

/** @throws WatchfireError WF_CLI_USAGE for invalid combinations of arguments */
function questionOf({ options: { object, run, trigger }, given }: Invocation<typeof options>): RedeliverQuestion {
  const named = ["object", "all", "run"].filter((each) => given.has(each));
  const only = trigger === undefined ? {} : { trigger };
  if (named.length !== 1) {
    throw new WatchfireError("WF_CLI_USAGE", {
      what: "redeliver takes one of --object NAME, --all and --run ID",
      actual: named.map((each) => `--${each}`).join(" ") || undefined,
      hint: "such as `watchfire redeliver greet --object default/ada`",
    });
  }
  if (run !== undefined && trigger !== undefined) {
    throw new WatchfireError("WF_CLI_USAGE", { what: "--trigger is for --object and --all: a run is of one trigger" });
  }
  if (run !== undefined) return { run };
  return object === undefined ? { all: true, ...only } : { object: readObject("--object", object), ...only };
}

/** Descriptions of why an object was skipped. */
const reasons = {
  waits: "with an event that waits already",
  news: "with a newer event under way",
  filtered: "which the trigger's events or conditions leave out",
  full: "for which there is no room until waiting events are handled",
} as const;

function render({ told, left }: Redeliveries): string {
  return [`redelivered ${told}`, ...left.map(({ why, count }) => `left ${count} ${reasons[why]}`)].join(", ");
}
