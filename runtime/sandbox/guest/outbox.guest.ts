import type { ErrorText } from "./failure.guest.ts";
import { quote } from "./primordials.guest.ts";

/** At most so many log lines, metrics and calls leave with one drain; the rest of the lines are dropped. */
const maxMessages = 1000;
/** Characters that leave with one drain. Etcd takes objects of 1.5 MiB, so a single update of one must fit. */
const maxText = 2 * 1024 * 1024;
/** Characters of log lines and metrics among them: the parent reads those, and should not be kept from its work by it. */
const maxWords = 256 * 1024;

// An outbox is a head of JSON, of lengths and numbers alone, and the texts that the lengths mean behind it. Both are
// assembled by concatenation, which no handler can interfere with.
interface OutputList {
  heads: string;
  texts: string;
}
const list = (): OutputList => ({ heads: "", texts: "" });
const done = list();
const calls = list();
const logs = list();
const metrics = list();
const strays = list();
let messages = 0;

function append(to: OutputList, head: string, text: string): void {
  to.heads = to.heads === "" ? head : `${to.heads},${head}`;
  to.texts += text;
}

/** The limit that so much more text would break in this drain. */
export function excessOf(length: number): { unit: string; actual: number; most: number } | undefined {
  if (messages >= maxMessages) return { unit: "messages", actual: messages + 1, most: maxMessages };
  const actual = calls.texts.length + logs.texts.length + metrics.texts.length + length;
  return actual > maxText ? { unit: "characters", actual, most: maxText } : undefined;
}

/** Whether that much more text of a log line or a metric may. */
export const fitsWord = (length: number): boolean =>
  excessOf(length) === undefined && logs.texts.length + metrics.texts.length + length < maxWords;

/** Notes that an event ended well. */
export const noteDone = (no: number): void => append(done, `${no}`, "");

/** Notes that an event ended otherwise; `retryAfterMs` is -1 where the handler did not say. */
export function noteFailed(no: number, kind: string, error: ErrorText, retryAfterMs: number): void {
  const { name, message, stack } = error;
  const lengths = `${name.length},${message.length},${stack.length}`;
  append(done, `[${no},"${kind}",${lengths},${retryAfterMs}]`, name + message + stack);
}

/** Notes a call to the parent. */
export function noteCall(call: number, no: number, operation: string, args: string): void {
  messages++;
  append(calls, `[${call},${no},${quote(operation)},${args.length}]`, args);
}

/** Notes a line of log; `fields` is JSON, or empty. */
export function noteLog(no: number, level: string, message: string, fields: string): void {
  messages++;
  append(logs, `[${no},"${level}",${message.length},${fields.length}]`, message + fields);
}

/** Notes a metric; `labels` is JSON, or empty. */
export function noteMetric(no: number, type: string, name: string, value: number, labels: string): void {
  messages++;
  append(metrics, `[${no},"${type}",${name.length},${value},${labels.length}]`, name + labels);
}

/** Notes what was thrown where no event is left that it could fail. One a drain is enough. */
export function noteStray({ name, message, stack }: ErrorText): void {
  if (strays.heads !== "") return;
  append(strays, `[${name.length},${message.length},${stack.length}]`, name + message + stack);
}

function take(from: OutputList): void {
  from.heads = "";
  from.texts = "";
}

/**
 * Empties the outbox: a line of JSON, `[done, calls, logs, metrics, wake, strays, left]`, and the texts of these lists in the
 * same order. `wakeMs` is -1 where no timer waits. `left` is how many of the batch's events have not begun: its last ones.
 */
export function takeOutbox(wakeMs: number, left: number): string {
  const head = `[[${done.heads}],[${calls.heads}],[${logs.heads}],[${metrics.heads}],${wakeMs},[${strays.heads}],${left}]`;
  const text = `${head}\n${done.texts}${calls.texts}${logs.texts}${metrics.texts}${strays.texts}`;
  take(done);
  take(calls);
  take(logs);
  take(metrics);
  take(strays);
  messages = 0;
  return text;
}

/** An outbox of the lines and metrics alone. What else there was is forgotten. */
export function takeWords(): string {
  take(done);
  take(calls);
  take(strays);
  return takeOutbox(-1, 0);
}
