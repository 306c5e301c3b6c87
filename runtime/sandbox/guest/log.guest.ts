import type { Log, Metrics } from "../../../sdk/index.ts";
import { cut } from "./cut.guest.ts";
import { fitsWord, noteLog, noteMetric } from "./outbox.guest.ts";
import { define, isFiniteNumber, quote } from "./primordials.guest.ts";
import { print, printFields } from "./print.guest.ts";
import { likelyRun, type Run } from "./run.guest.ts";

type Level = "debug" | "info" | "warn" | "error";

/** Maximum characters of one line's message, of its fields, and of all lines of one event. */
const maxMessage = 4096;
const maxFields = 8192;
const maxPerRun = 64 * 1024;
/** Maximum number of metric samples of one event. One costs the parent three times what it costs the handler. */
const maxMetrics = 1000;

function write(run: Run, level: Level, message: unknown, fields: unknown): void {
  if (run.logged > maxPerRun) return;
  let text = cut(typeof message === "string" ? message : print(message), maxMessage);
  let more = "";
  if (typeof fields === "object" && fields !== null) more = inspectFields(fields);
  run.logged += text.length + more.length + 16;
  if (run.logged > maxPerRun || !fitsWord(text.length + more.length)) {
    run.logged = maxPerRun + 1;
    text = "further lines of this event are dropped: it logged more than 64 KiB";
    more = "";
    level = "warn";
  }
  noteLog(run.no, level, text, more);
}

function inspectFields(fields: object): string {
  const text = printFields(fields);
  return text.length > maxFields ? `{"truncated":${quote(cut(text, maxFields))}}` : text;
}

/** Creates `ctx.log` of one run. */
export const createLog = (run: Run): Log => ({
  debug: (message, fields) => write(run, "debug", message, fields),
  info: (message, fields) => write(run, "info", message, fields),
  warn: (message, fields) => write(run, "warn", message, fields),
  error: (message, fields) => write(run, "error", message, fields),
});

/** Creates `ctx.metrics` of one run. */
export function createMetrics(run: Run): Metrics {
  const note = (type: "increment" | "observe", name: unknown, value: unknown, labels: unknown) => {
    if (typeof name !== "string" || typeof value !== "number" || !isFiniteNumber(value)) {
      throw new TypeError("a metric takes a name, and a finite number as its value");
    }
    if (++run.metrics > maxMetrics) return;
    const text = typeof labels === "object" && labels !== null ? inspectFields(labels) : "";
    if (fitsWord(text.length)) noteMetric(run.no, type, cut(name, 200), value, text);
  };
  return {
    increment: (name, by = 1, labels) => note("increment", name, by, labels),
    observe: (name, value, labels) => note("observe", name, value, labels),
  };
}

/** Installs `console`. Its lines are logged like those of `ctx.log`, under the run that most likely wrote them. */
export function installConsole(): void {
  const line =
    (level: Level) =>
    (...values: unknown[]): void => {
      const run = likelyRun();
      if (!run) return;
      let text = "";
      for (let at = 0; at < values.length && text.length < maxMessage; at++) {
        text += (at === 0 ? "" : " ") + print(values[at]);
      }
      write(run, level, text, undefined);
    };
  const nothing = () => {};
  const console = {
    debug: line("debug"),
    trace: line("debug"),
    log: line("info"),
    info: line("info"),
    dir: line("info"),
    table: line("info"),
    warn: line("warn"),
    error: line("error"),
    assert: (holds: unknown, ...values: unknown[]) => {
      if (!holds) console.error("assertion failed", ...values);
    },
    group: nothing,
    groupEnd: nothing,
    time: nothing,
    timeEnd: nothing,
  };
  define(globalThis, "console", { value: console, writable: true, configurable: true });
}
