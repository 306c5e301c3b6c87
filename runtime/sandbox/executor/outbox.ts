import type { Rejection } from "./rejection.ts";

/** What the executor itself needs of a drained outbox; the parent checks all of it again. */
export interface OutboxSummary {
  /** Events that are over, and whether their isolate should take no more. */
  readonly done: readonly { readonly no: number; readonly tainted: boolean }[];
  readonly calls: readonly { readonly call: number; readonly no: number }[];
  /** Milliseconds until a timer is due; -1 for none. */
  readonly wakeMs: number;
  /** How many of the entry's events have not begun: its last ones. */
  readonly left: number;
}

/** Characters of an outbox (the guest's own limit, and as much for errors), and of the JSON at its head. */
const maxCharacters = 4 * 1024 * 1024;
const maxHead = 256 * 1024;

/** Ends of an event after which code of it may still be at work. */
const tainting: readonly unknown[] = ["deadline", "cpu", "output"];

/** Reads an outbox's head; undefined for anything that the guest's bootstrap would not write. */
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

/** Whether all of an outbox is there that has lines and metrics alone: V8 may end code amid the writing of one. */
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

/** An outbox in which the event `no` did not end well after all; one that had ended otherwise stays as it is. */
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

/** An outbox with a rejection that no event is left for. */
export function withStray(outbox: string, { name, message, stack }: Rejection): string {
  const newline = outbox.indexOf("\n");
  const head = JSON.parse(outbox.slice(0, newline)) as OutboxHead;
  head[5].push([name.length, message.length, stack.length]);
  return `${JSON.stringify(head)}${outbox.slice(newline)}${name}${message}${stack}`;
}
