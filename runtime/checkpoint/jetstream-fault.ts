import { WatchfireError } from "../errors.ts";
import { lowerFirst } from "../wording.ts";

/** Codes of JetStream's API errors (`server/errors.json` of nats-server). */
export const status = {
  streamNotFound: 10059,
  streamExists: 10058,
  messageNotFound: 10037,
  wrongLastSequence: 10071,
  wrongLastSequenceConstant: 10164,
} as const;

/** Whether JetStream answered with this code. */
export const isStatus = (error: unknown, ...codes: readonly number[]): boolean =>
  error instanceof Error && "code" in error && codes.includes(Number(error.code));

/** The server takes no such user, or this user may not do that. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error &&
  (["AuthorizationError", "UserAuthenticationExpiredError", "PermissionViolationError"].includes(error.name) ||
    isRefusal(error.cause));

/** Whether nobody took the message: there is no stream for its subject, or no JetStream. */
export const isUnheard = (error: unknown): boolean =>
  error instanceof Error &&
  (["JetStreamNotEnabled", "NoRespondersError"].includes(error.name) || isUnheard(error.cause));

/** What is said of a connection that could not be made; of the servers, their addresses alone. */
export function connectFault(error: unknown, servers: readonly string[]): WatchfireError {
  if (error instanceof WatchfireError) return error;
  const actual = servers.join(",");
  if (isRefusal(error)) {
    return new WatchfireError("WF_CHECKPOINT_NATS", {
      what: `the server says: ${reason(error)}`,
      actual,
      cause: error,
    });
  }
  return new WatchfireError("WF_CHECKPOINT_NATS_AWAY", { what: reason(error), actual, cause: error });
}

/** @param what could not be done */
export function natsFault(error: unknown, what: string): WatchfireError {
  if (error instanceof WatchfireError) return error;
  // An answer of JetStream itself, such as that the account may have no more streams.
  const answered = error instanceof Error && "code" in error && Number(error.code) > 0 && Number(error.code) !== 503;
  const code = isRefusal(error) || answered ? "WF_CHECKPOINT_NATS" : "WF_CHECKPOINT_NATS_AWAY";
  return new WatchfireError(code, { what: `${what}: ${reason(error)}`, cause: error });
}

/**
 * Positions of a slot that cannot be read. The remedy begins as after a loss, with the slot alone.
 * @param why such as `its snapshot is gone`
 */
export const corrupt = (
  { logStream, logSubject }: { readonly logStream: string; readonly logSubject: string },
  slot: string,
  why: string,
  cause?: unknown,
): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_CORRUPT", {
    what: `the positions of ${logSubject}.${slot} on NATS cannot be used: ${why}`,
    hint: `run \`nats stream purge ${logStream} --subject ${logSubject}.${slot}\`: what the slot knew is gone then, all is listed, and what may be a repeat is flagged. Or end all replicas, and restore the streams from a copy`,
    cause,
  });

const reason = (error: unknown): string => lowerFirst(error instanceof Error ? error.message : String(error));
