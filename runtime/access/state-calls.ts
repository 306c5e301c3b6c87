import { setImmediate as nextTurn } from "node:timers/promises";
import { WatchfireError } from "../base/errors.ts";
import type { Caller } from "../sandbox/host-calls.ts";
import type { ArgumentsOf } from "./arguments.ts";
import type { OnDryRunWrite } from "./dry-run.ts";
import { invalid } from "./failure.ts";

/** The operations of `ctx.state`. */
type StateOperation = "state.get" | "state.keys" | "state.set" | "state.delete";

export const isStateOperation = (operation: string): operation is StateOperation => operation.startsWith("state.");

/**
 * Reads and stages entries of the caller's state, with JSON text. The attempt's end decides about the writes.
 * @param limit bytes that the function's entries may take
 * @param unsent receives the writes instead, in a dry run
 * @throws CallFailure; the signal's reason
 */
export async function answerFromState<Name extends StateOperation>(
  caller: Caller,
  operation: Name,
  args: ArgumentsOf<Name>,
  {
    limit,
    signal,
    unsent,
  }: { readonly limit: number; readonly signal: AbortSignal; readonly unsent?: OnDryRunWrite | undefined },
): Promise<string> {
  // An executor reports its calls before the ends of the attempts that precede them, and this attempt must see their writes.
  await nextTurn();
  signal.throwIfAborted();
  caller.staged ??= caller.state?.stage();
  const { staged } = caller;
  if (!staged) throw invalid(`${operation}: this run keeps no state`);
  if (operation === "state.keys") return JSON.stringify(staged.keys((args as ArgumentsOf<"state.keys">).prefix));
  const { key } = args as ArgumentsOf<"state.get">;
  if (operation === "state.get") {
    const value = staged.get(key);
    return value === undefined ? "{}" : `{"value":${value}}`;
  }
  const value = operation === "state.set" ? JSON.stringify((args as ArgumentsOf<"state.set">).value) : undefined;
  try {
    if (unsent) tell(unsent, caller, operation, key, value);
    else staged.put(key, value, limit);
    return "null";
  } catch (error) {
    throw error instanceof WatchfireError ? invalid(error.message) : error;
  }
}

function tell(
  unsent: OnDryRunWrite,
  caller: Caller,
  operation: StateOperation,
  key: string,
  value: string | undefined,
): void {
  const method = operation === "state.set" ? "SET" : "DELETE";
  unsent({ function: caller.function, method, to: `ctx.state ${key}`, ...(value !== undefined && { body: value }) });
}
