import { pause, systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { clean } from "../base/wording.ts";
import { totalOf } from "../control/function-status/function-report.ts";
import { type StatusAnswer, statusAnswerSchema } from "../control/status-answer.ts";
import { table } from "../dev/table.ts";
import { command } from "./command.ts";
import { output } from "./options.ts";
import { runtimeOptions, withRuntime } from "./running-runtime.ts";
import { stopSignal } from "./signals.ts";

/** Interval of --watch, in milliseconds. */
const lookEveryMs = 2_000;

/** Moves the cursor to the top left, and clears the screen. */
const clearScreen = "\u001b[H\u001b[2J";

export const status = command({
  name: "status",
  summary: "shows each function's state, its waiting events and its dead letters, and each source that is watched",
  options: {
    ...runtimeOptions,
    output: output("json"),
    watch: { summary: "shows it again when it has changed, every 2 s, until it is stopped" },
  },
  run: (invocation) =>
    withRuntime(
      invocation,
      async (runtime) => {
        const isJson = invocation.options.output === "json";
        const show = async () => {
          const answer = await runtime.ask(statusAnswerSchema, "status");
          return isJson ? JSON.stringify(answer, null, 2) : describeStatus(answer, Date.now()).join("\n");
        };
        let shown = await show();
        process.stdout.write(`${shown}\n`);
        if (!invocation.given.has("watch")) return 0;
        const stop = stopSignal(readEnvironment());
        const opening = process.stdout.isTTY && !isJson ? clearScreen : "\n";
        while (!stop.aborted) {
          await pause(systemClock, lookEveryMs, stop).catch(() => undefined);
          if (stop.aborted) break;
          const next = await show();
          if (next !== shown) process.stdout.write(`${opening}${next}\n`);
          shown = next;
        }
        return 0;
      },
      { needsToken: false },
    ),
});

/** Returns the lines of an answer. `now`: epoch milliseconds. */
export function describeStatus(answer: StatusAnswer, now: number): string[] {
  const { functions, sources, fleet } = answer;
  const running = fleet?.slots.filter(({ state }) => state === "running").length;
  const troubles = (["checkpoint", "deployment", "sandbox", "history"] as const).flatMap((name) => {
    const { reason, message } = answer[name] ?? {};
    return reason === undefined ? [] : [clean(`${name}: ${reason}: ${message ?? ""}`)];
  });
  return [
    clean(roleOf(answer)),
    ...(fleet ? [`${running} of ${fleet.slots.length} slots run here; \`watchfire slots\` shows them all`] : []),
    ...troubles,
    "",
    ...(functions.length === 0 ? ["there is no function"] : functionTable(functions, now)),
    ...(sources.length === 0 ? [] : ["", ...sourceTable(sources)]),
  ];
}

const roleOf = ({ role, lease }: StatusAnswer): string =>
  role === "standby" && lease ? `standby; ${lease.holder || "no replica"} holds the Lease` : role;

function functionTable(functions: StatusAnswer["functions"], now: number): string[] {
  const sets = new Set(functions.flatMap(({ set }) => set ?? []));
  const inSet = (set = "") => (sets.size > 1 ? [set] : []);
  const rows = functions.map((each) => [
    each.name ?? "",
    ...inSet(each.set),
    stateOf(each),
    known(totalOf(each.queued, each.spilled)),
    each.lagSeconds === undefined ? known(undefined) : secondsOf(each.lagSeconds),
    known(each.inFlight),
    each.lastEvent === undefined ? "" : `${secondsOf((now - Date.parse(each.lastEvent)) / 1000)} ago`,
    known(each.failures),
    known(each.deadLetters),
  ]);
  const counts = ["WAITING", "OLDEST", "RUNNING", "LAST EVENT", "FAILED ATTEMPTS", "DEAD LETTERS"];
  const header = ["FUNCTION", ...inSet("SET"), "STATE", ...counts];
  const said = functions.flatMap(({ name = "", message }) =>
    message === undefined ? [] : message.split("\n").map((line) => clean(`  ${name}: ${line}`)),
  );
  const canaries = functions.flatMap(({ name = "", canary }) =>
    canary?.state === "running"
      ? `  ${name}: a canary gets ${canary.share}% of the keys; \`watchfire canary\` compares it with the current code`
      : [],
  );
  return [...table(header, rows), ...said, ...canaries];
}

const known = (count: number | undefined): string => (count === undefined ? "unknown" : String(count));

/** A ready function may have a reason as well, if something needs attention. */
const stateOf = ({ ready, reason }: StatusAnswer["functions"][number]): string =>
  reason === undefined ? (ready ? "Ready" : "NotReady") : ready ? `Ready, ${reason}` : reason;

function sourceTable(sources: StatusAnswer["sources"]): string[] {
  const rows = sources.map((each) => [
    `${each.apiVersion}/${each.kind}`,
    each.namespace ?? "all",
    shortened([each.labelSelector, each.fieldSelector].filter(Boolean).join(" ")),
    each.state,
    each.resourceVersion ?? "",
    secondsOf(each.lastByteAgeMs === undefined ? undefined : each.lastByteAgeMs / 1000),
    String(each.subscribers ?? ""),
  ]);
  const header = ["SOURCE", "NAMESPACE", "SELECTOR", "STATE", "VERSION", "SILENT FOR", "TRIGGERS"];
  const said = sources.flatMap(({ kind, message }) => (message === undefined ? [] : [clean(`  ${kind}: ${message}`)]));
  return [...table(header, rows), ...said];
}

/** The longest selector that is shown whole. A source of Secrets excludes the runtime's own by name. */
const longestSelector = 60;

/** `-o json` has the whole selector. */
const shortened = (selector: string): string =>
  selector.length > longestSelector ? `${selector.slice(0, longestSelector)}…` : selector;

/** Formats an age in its largest unit: `42 s`, `7 min`, `3 h`, `12 d`; empty if unknown. */
function secondsOf(seconds: number | undefined): string {
  if (seconds === undefined || Number.isNaN(seconds)) return "";
  const units = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
  ] as const;
  const [size, unit] = units.find(([size]) => seconds >= 2 * size) ?? [1, "s"];
  return `${Math.max(0, Math.floor(seconds / size))} ${unit}`;
}
