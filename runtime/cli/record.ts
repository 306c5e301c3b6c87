import { dirname, join, relative } from "node:path";
import { parseDuration } from "@watchfire/sdk";
import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { saveFixture } from "../control/record/fixture.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import { loadFunctions } from "../manifest/load.ts";
import { type RecordAnswer, recordAnswerSchema, redeliveriesSchema } from "../observe/control-api.ts";
import { command, type Invocation } from "./command.ts";
import { readFolder, readObject } from "./operand.ts";
import { functions as functionsFolder } from "./options.ts";
import {
  functionOperand,
  functionPath,
  reasonOption,
  reportElsewhere,
  runtimeOptions,
  withRuntime,
} from "./running-runtime.ts";
import { stopSignal, untilAborted } from "./signals.ts";
import { readValues, valuesOption } from "./values.ts";

/** How long one request waits, in seconds. The endpoints close a connection that is silent for 15. */
const waitSeconds = 10;
/** Maximum number of events in one recording. */
const mostCount = 1000;

const options = {
  ...runtimeOptions,
  ...reasonOption,
  functions: functionsFolder,
  values: valuesOption,
  to: { value: "DIR", summary: "the folder of the fixtures; default: `events` next to the function's manifest" },
  count: { value: "N", summary: `the number of events, at most ${mostCount}`, default: "1" },
  follow: { summary: "continues until it is stopped" },
  object: {
    value: "NAME",
    summary: "delivers this object again, as `watchfire redeliver` does: NAMESPACE/NAME, or NAME without a namespace",
  },
  timeout: { value: "DURATION", summary: "how long to wait for the next event", default: "1m" },
  force: { summary: "overwrites a fixture of the same name, instead of adding a number to the name" },
} as const;

export const record = command({
  name: "record",
  summary: "saves the events that a function receives from now on as fixtures for `watchfire test`, without secrets",
  operands: "FUNCTION",
  options,
  async run(invocation) {
    const { given, operands } = invocation;
    const name = functionOperand("record", operands);
    const { count, timeoutMs } = limitsOf(invocation);
    const folder = await folderOf(name, invocation);
    const { object } = invocation.options;
    const told = object === undefined ? undefined : readObject("--object", object);
    return withRuntime(invocation, async (runtime) => {
      const ask = (body: object) => runtime.ask(recordAnswerSchema, functionPath(name, "record"), body);
      const stop = stopSignal(readEnvironment());
      const stopped = untilAborted(stop);
      const begun = await ask(given.has("follow") ? {} : { count });
      let { recording } = begun;
      process.stderr.write(`recording the events of ${name}\n`);
      reportElsewhere(begun);
      if (told) await runtime.ask(redeliveriesSchema, functionPath(name, "redeliver"), { object: told });
      let lastAt = systemClock.monotonic();
      while (recording !== undefined && !stop.aborted) {
        const left = Math.max(0, timeoutMs - (systemClock.monotonic() - lastAt)) / 1000;
        const wait = given.has("follow") ? waitSeconds : Math.min(waitSeconds, left);
        const answer: RecordAnswer | undefined = await Promise.race([
          ask({ recording, wait }),
          stopped.then(() => undefined),
        ]);
        if (!answer) break;
        recording = answer.recording;
        for (const each of answer.taken) {
          process.stdout.write(`${relative(process.cwd(), saveFixture(folder, each, given.has("force")))}\n`);
        }
        if (answer.left > 0) process.stderr.write(`left ${answer.left}, too large for a recording\n`);
        if (answer.taken.length > 0) lastAt = systemClock.monotonic();
        else if (left === 0 && !given.has("follow")) throw nothing(name, invocation.options.timeout);
      }
      return 0;
    });
  },
});

/** @throws WatchfireError WF_CLI_USAGE */
function limitsOf({ options: { count, timeout }, given }: Invocation<typeof options>) {
  const most = Number(count);
  if (!/^\d{1,4}$/.test(count) || most < 1 || most > mostCount) {
    throw new WatchfireError("WF_CLI_USAGE", { what: `--count takes 1 to ${mostCount}`, actual: count });
  }
  if (given.has("count") && given.has("follow")) {
    throw new WatchfireError("WF_CLI_USAGE", { what: "--count ends a recording, and --follow does not" });
  }
  const timeoutMs = parseDuration(timeout);
  if (timeoutMs === undefined) {
    throw new WatchfireError("WF_CLI_USAGE", { what: "--timeout takes a duration, such as 30s", actual: timeout });
  }
  return { count: most, timeoutMs };
}

/** @throws WatchfireError WF_CLI_USAGE if no folder is given, and the function's folder does not exist */
async function folderOf(
  name: string,
  { options: { to, functions, values: file } }: Invocation<typeof options>,
): Promise<string> {
  if (to !== undefined) return to;
  const values = readValues(file);
  const loaded = await loadFunctions(readFolder(functions), { checkExpression, values, placeholders: "option" });
  const found = loaded.functions.find((each) => each.name === name);
  if (found) return join(dirname(found.file), "events");
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "the functions folder has no function of this name",
    actual: name,
    hint: "name a folder for the fixtures with --to",
  });
}

const nothing = (name: string, timeout: string): WatchfireError =>
  new WatchfireError("WF_CLI_NOT_RECORDED", { what: `${name} received no event within ${timeout}` });
