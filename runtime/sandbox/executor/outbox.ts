import type { Rejection } from "./rejection.ts";

/** The fields of a drained outbox that the executor itself needs. The parent validates the whole outbox again. */
export interface OutboxSummary {
  /** Events that have ended, and whether their isolate should stop taking events. */
  readonly done: readonly { readonly no: number; readonly tainted: boolean }[];
  readonly calls: readonly { readonly call: number; readonly no: number }[];
  /** Milliseconds until a timer is due; -1 if no timer is set. */
  readonly wakeMs: number;
  /** How many of the entry's last events have not begun. */
  readonly left: number;
}

/** Maximum characters of an outbox (twice the guest's own limit, to leave room for errors) and of its JSON head. */
const maxCharacters = 4 * 1024 * 1024;
const maxHead = 256 * 1024;

/** Outcomes of an event after which its code may still be running. */
const tainting: readonly unknown[] = ["deadline", "cpu", "output"];

/** Parses an outbox's head. Returns `undefined` for anything that the guest's bootstrap would not write. */
export function summarise(text: unknown): OutboxSummary | undefined {
  if (typeof text !== "string" || text.length > maxCharacters) return undefined;
  const newline = text.indexOf("\n");
  if (newline < 0 || newline > maxHead) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text.slice(0, newline));
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed)) return undefined;
  const [done, calls, , , wakeMs, , left] = parsed as unknown[];
  if (!Array.isArray(done) || !Array.isArray(calls) || typeof wakeMs !== "number") return undefined;
  if (typeof left !== "number") return undefined;
  return {
    done: done.map((entry) =>
      Array.isArray(entry)
        ? { no: Number(entry[0]), tainted: tainting.includes(entry[1]) }
        : { no: Number(entry), tainted: false },
    ),
    calls: calls.map((entry) => ({ call: Number(entry?.[0]), no: Number(entry?.[1]) })),
    wakeMs,
    left,
  };
}

/** Whether an outbox that contains only log lines and metrics is complete. V8 may end code while it is writing one. */
export function isWhole(outbox: string): boolean {
  const newline = outbox.indexOf("\n");
  const [, , logs, metrics] = JSON.parse(outbox.slice(0, newline)) as [unknown, unknown, number[][], number[][]];
  let length = newline + 1;
  for (const [, , message = 0, fields = 0] of logs) length += message + fields;
  for (const [, , name = 0, , labels = 0] of metrics) length += name + labels;
  return length === outbox.length;
}

type DoneEntry =
  | number
  | [no: number, kind: string, name: number, message: number, stack: number, retryAfterMs: number];
type OutboxHead = [DoneEntry[], unknown, unknown, unknown, number, unknown[], number];

/** Returns the outbox with event `no` changed from success to failure. An event that had already failed is unchanged. */
export function withFailure(outbox: string, no: number, { name, message, stack }: Rejection): string {
  const newline = outbox.indexOf("\n");
  const [done, ...rest] = JSON.parse(outbox.slice(0, newline)) as OutboxHead;
  const at = done.findIndex((entry) =>
    typeof entry === "number" ? entry === no : entry[0] === no && entry[1] === "requeue",
  );
  if (at < 0) return outbox;
  let before = newline + 1;
  for (const entry of done.slice(0, at)) if (typeof entry === "object") before += entry[2] + entry[3] + entry[4];
  done[at] = [no, "failed", name.length, message.length, stack.length, -1];
  const head = JSON.stringify([done, ...rest]);
  return `${head}\n${outbox.slice(newline + 1, before)}${name}${message}${stack}${outbox.slice(before)}`;
}

/** Returns the outbox with a rejection added that cannot be charged to an event. */
export function withStray(outbox: string, { name, message, stack }: Rejection): string {
  const newline = outbox.indexOf("\n");
  const head = JSON.parse(outbox.slice(0, newline)) as OutboxHead;
  head[5].push([name.length, message.length, stack.length]);
  return `${JSON.stringify(head)}${outbox.slice(newline)}${name}${message}${stack}`;
}
