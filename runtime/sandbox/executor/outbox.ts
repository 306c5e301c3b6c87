import type { Rejection } from "./rejection.ts";

/** What the executor itself needs of a drained outbox; the parent checks all of it again. */
export interface OutboxSummary {
  /** Events that are over, and whether their isolate should take no more. */
  readonly done: readonly { readonly no: number; readonly tainted: boolean }[];
  readonly calls: readonly { readonly call: number; readonly no: number }[];
  /** Milliseconds until a timer is due; -1 for none. */
  readonly wakeMs: number;
}

/** Characters of an outbox: the guest's own limit of 2 Mi, and room for the escaping of JSON within JSON. */
const maxCharacters = 4 * 1024 * 1024;

/** Ends of an event after which code of it may still be at work. */
const tainting: readonly unknown[] = ["deadline", "cpu", "output"];

/** Reads an outbox; undefined for anything that the guest's bootstrap would not write. */
export function summarise(text: unknown): OutboxSummary | undefined {
  if (typeof text !== "string" || text.length > maxCharacters) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed)) return undefined;
  const [done, calls, , , wakeMs] = parsed as unknown[];
  if (!Array.isArray(done) || !Array.isArray(calls) || typeof wakeMs !== "number") return undefined;
  return {
    done: done.map((entry) =>
      Array.isArray(entry)
        ? { no: Number(entry[0]), tainted: tainting.includes(entry[1]) }
        : { no: Number(entry), tainted: false },
    ),
    calls: calls.map((entry) => ({ call: Number(entry?.[0]), no: Number(entry?.[1]) })),
    wakeMs,
  };
}

/** An outbox in which the event `no` did not end well after all; one that had ended otherwise stays as it is. */
export function withFailure(outbox: string, no: number, { name, message, stack }: Rejection): string {
  const [done, ...rest] = JSON.parse(outbox) as [unknown[], ...unknown[]];
  const failed = done.map((entry) => (entry === no ? [no, "failed", name, message, stack, -1] : entry));
  return JSON.stringify([failed, ...rest]);
}

/** An outbox with a rejection that no event is left for. */
export function withStray(outbox: string, { name, message, stack }: Rejection): string {
  const [done, calls, logs, metrics, wakeMs] = JSON.parse(outbox) as unknown[];
  return JSON.stringify([done, calls, logs, metrics, wakeMs, [[name, message, stack]]]);
}
