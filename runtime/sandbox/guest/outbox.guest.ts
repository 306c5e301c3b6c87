import { jsonStringify } from "./primordials.guest.ts";

/** At most so many log lines, metrics and calls leave with one drain; the rest of the lines are dropped. */
const maxMessages = 1000;
/** Characters that leave with one drain. Etcd takes objects of 1.5 MiB, so a single update of one must fit. */
const maxText = 2 * 1024 * 1024;

// Text is assembled by concatenation, which no handler can interfere with.
let done = "";
let calls = "";
let logs = "";
let metrics = "";
let strays = "";
let messages = 0;

/** A JSON string literal. */
export const quote = (text: string): string => jsonStringify(text) as string;

const append = (list: string, entry: string): string => (list === "" ? entry : `${list},${entry}`);

/** Whether that much more text may still leave with this drain. */
export const fits = (length: number): boolean =>
  messages < maxMessages && calls.length + logs.length + metrics.length + length < maxText;

/** Notes that an event is over; `entry` is its JSON. */
export function noteDone(entry: string): void {
  done = append(done, entry);
}

/** Notes a call to the parent. */
export function noteCall(entry: string): void {
  messages++;
  calls = append(calls, entry);
}

/** Notes a line of log. */
export function noteLog(entry: string): void {
  messages++;
  logs = append(logs, entry);
}

/** Notes a metric. */
export function noteMetric(entry: string): void {
  messages++;
  metrics = append(metrics, entry);
}

/** Notes what was thrown where no event is left that it could fail; `entry` is its JSON. One a drain is enough. */
export function noteStray(entry: string): void {
  if (strays === "") strays = entry;
}

/** Empties the outbox: JSON of `[done, calls, logs, metrics, wake, strays]`. `wakeMs` is -1 where no timer waits. */
export function takeOutbox(wakeMs: number): string {
  const text = `[[${done}],[${calls}],[${logs}],[${metrics}],${wakeMs},[${strays}]]`;
  done = "";
  calls = "";
  logs = "";
  metrics = "";
  strays = "";
  messages = 0;
  return text;
}
