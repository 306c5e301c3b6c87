import { clean } from "../base/wording.ts";
import { type StatusAnswer, statusAnswerSchema } from "../control/status-answer.ts";
import { table } from "../dev/table.ts";
import { command } from "./command.ts";
import { output } from "./options.ts";
import { runtimeOptions, withRuntime } from "./running-runtime.ts";
import { readSet } from "./set-name.ts";

type AnsweredCanary = NonNullable<StatusAnswer["functions"][number]["canary"]>;

export const canary = command({
  name: "canary",
  summary: "compares the attempts of each function's canary with those of its current code",
  options: {
    set: { value: "NAME", summary: "only functions of this set" },
    ...runtimeOptions,
    output: output("json"),
  },
  run: (invocation) =>
    withRuntime(
      invocation,
      async (runtime) => {
        const { set: named, output: format } = invocation.options;
        const only = named === undefined ? undefined : readSet(named);
        const { functions } = await runtime.ask(statusAnswerSchema, "status");
        const found = functions.flatMap(({ name = "", set, canary: own }) =>
          own && (only === undefined || only === set) ? [{ name, set, ...own }] : [],
        );
        if (format === "json") process.stdout.write(`${JSON.stringify({ canaries: found }, null, 2)}\n`);
        else if (found.length > 0) process.stdout.write(`${describeCanaries(found).join("\n")}\n`);
        else process.stderr.write("there is no canary\n");
        return 0;
      },
      { needsToken: false },
    ),
});

/** Returns the lines of a comparison: two rows for each function. */
export function describeCanaries(found: readonly (AnsweredCanary & { readonly name: string })[]): string[] {
  const rows = found.flatMap(({ name, share, state, since, current, canary: own }) => {
    const kept = state === "aborted" ? 0 : share;
    const row = (of: AnsweredCanary["canary"]) => [
      String(of.runs),
      String(of.failures),
      timeOf(of.p50Ms),
      timeOf(of.p99Ms),
    ];
    return [
      [name, "current", `${100 - kept}%`, ...row(current), since.replace(/\.\d+Z$/, "Z")],
      ["", state === "aborted" ? "canary (aborted)" : "canary", `${kept}%`, ...row(own)],
    ];
  });
  const said = found.flatMap(({ name, reason }) => (reason === undefined ? [] : clean(`  ${name}: ${reason}`)));
  return [...table(["FUNCTION", "VERSION", "KEYS", "RUNS", "FAILURES", "P50", "P99", "SINCE"], rows), ...said];
}

const timeOf = (ms: number | undefined): string => (ms === undefined ? "" : `${ms} ms`);
