import type { ErrorText } from "./failure.guest.ts";
import { quote } from "./primordials.guest.ts";

/** Maximum number of log lines, metrics and calls in one drain. Further lines are dropped. */
const maxMessages = 1000;
/** Maximum characters of one drain. Etcd accepts objects of 1.5 MiB, so an update of one must fit. */
const maxText = 2 * 1024 * 1024;
/** Maximum characters of log lines and metrics in one drain. The parent parses them, and must not be kept busy with it. */
const maxWords = 256 * 1024;

// An outbox is a JSON head, which consists of lengths and numbers, followed by the texts to which the lengths refer. Both are
// built by concatenation, with which no handler can interfere.
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

/** Returns the limit of this drain that `length` more characters would exceed. */
export function excessOf(length: number): { unit: string; actual: number; most: number } | undefined {
  if (messages >= maxMessages) return { unit: "messages", actual: messages + 1, most: maxMessages };
  const actual = calls.texts.length + logs.texts.length + metrics.texts.length + length;
  return actual > maxText ? { unit: "characters", actual, most: maxText } : undefined;
}

/** Whether `length` more characters of log lines or metrics fit. */
export const fitsWord = (length: number): boolean =>
  excessOf(length) === undefined && logs.texts.length + metrics.texts.length + length < maxWords;

/** Records that an event succeeded. */
export const noteDone = (no: number): void => append(done, `${no}`, "");

/** Records that an event ended in another way. `retryAfterMs` is -1 if the handler did not set it. */
export function noteFailed(no: number, kind: string, error: ErrorText, retryAfterMs: number): void {
  const { name, message, stack } = error;
  const lengths = `${name.length},${message.length},${stack.length}`;
  append(done, `[${no},"${kind}",${lengths},${retryAfterMs}]`, name + message + stack);
}

/** Records a call to the parent. */
export function noteCall(call: number, no: number, operation: string, args: string): void {
  messages++;
  append(calls, `[${call},${no},${quote(operation)},${args.length}]`, args);
}

/** Records a log line. `fields` is JSON, or empty. */
export function noteLog(no: number, level: string, message: string, fields: string): void {
  messages++;
  append(logs, `[${no},"${level}",${message.length},${fields.length}]`, message + fields);
}

/** Records a metric sample. `labels` is JSON, or empty. */
export function noteMetric(no: number, type: string, name: string, value: number, labels: string): void {
  messages++;
  append(metrics, `[${no},"${type}",${name.length},${value},${labels.length}]`, name + labels);
}

/** Records an error that cannot be charged to an event. At most one per drain. */
export function noteStray({ name, message, stack }: ErrorText): void {
  if (strays.heads !== "") return;
  append(strays, `[${name.length},${message.length},${stack.length}]`, name + message + stack);
}

function take(from: OutputList): void {
  from.heads = "";
  from.texts = "";
}

/**
 * Returns the outbox and empties it: a line of JSON, `[done, calls, logs, metrics, wake, strays, left]`, and the texts of these
 * lists in the same order. `wakeMs` is -1 if no timer is set. `left` is how many of the batch's last events have not begun.
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

/** Returns an outbox with only the log lines and metrics, and discards the rest. */
export function takeWords(): string {
  take(done);
  take(calls);
  take(strays);
  return takeOutbox(-1, 0);
}
