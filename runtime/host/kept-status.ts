import { runtimeAccount } from "../access/account.ts";
import { FunctionObjects } from "../control/function-status/function-objects.ts";
import { type Publication, StatusPublisher } from "../control/function-status/status-publisher.ts";
import type { RuntimeOptions } from "./components.ts";
import { type LeaseHold, unlessHeld } from "./while-held.ts";

/** Keeps the Function objects of a runtime that is to keep them: while `hold` holds, where there is one. Undefined of others. */
export function keptStatus(
  options: RuntimeOptions,
  hold: LeaseHold | undefined,
  read: () => Publication,
): StatusPublisher | undefined {
  const { functionStatus, transport, namespace, account = runtimeAccount, clock, log } = options;
  if (!functionStatus) return undefined;
  const objects = new FunctionObjects(transport, namespace, account, hold && unlessHeld(hold));
  return new StatusPublisher({ objects, account, read, clock, log });
}
