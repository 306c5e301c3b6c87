import { type ErrorCode, WatchfireError } from "../../base/errors.ts";
import { lowerFirst } from "../../base/wording.ts";

/** Codes of temporary faults, after which NATS may accept writes again. */
export const passingCodes: readonly ErrorCode[] = [
  "WF_CHECKPOINT_NATS_AWAY",
  "WF_CHECKPOINT_NATS_FULL",
  "WF_CHECKPOINT_NATS_JETSTREAM",
];

/** Codes of JetStream's API errors (`server/errors.json` of nats-server). */
export const status = {
  streamNotFound: 10059,
  streamExists: 10058,
  messageNotFound: 10037,
  wrongLastSequence: 10071,
  wrongLastSequenceConstant: 10164,
} as const;

/** JetStream's error codes for a lack of room, each with a hint about the limit. */
const full: Readonly<Record<number, string>> = {
  10002: "raise the account's limits of JetStream's storage (max_file, max_mem)",
  10023: "raise the servers' max_file_store, or give their disks room",
  10028: "raise the servers' max_memory_store",
  10047: "raise the servers' max_file_store, or give their disks room",
  10077: "raise the stream's max_bytes or max_msgs, or take them off",
};

/** JetStream's error codes for unsuitable settings, each with a hint. */
const unfit: Readonly<Record<number, string>> = {
  10005: "bring more servers into the cluster, or ask for fewer by --nats-replicas",
  10026: "raise the max_consumers of the account or the stream: each opening of a slot takes one for a moment",
  10027: "raise the account's max_streams: each runtime has three streams",
  10054: "raise the stream's max_msg_size, or take it off",
  10074: "run NATS as a cluster, or leave out --nats-replicas",
  10113: "take max_bytes_required off the account: a limit of the account itself serves better",
};

/** JetStream is not enabled: on the server, or for the account. */
const off: readonly number[] = [10039, 10076];

/** Error codes of a cluster without a leader, either of the cluster or of the requested asset. */
const leaderless: readonly number[] = [10007, 10008, 10009, 10118, 10119];

/** True if JetStream answered with one of these codes. */
export const isStatus = (error: unknown, ...codes: readonly number[]): boolean =>
  error instanceof Error && "code" in error && codes.includes(Number(error.code));

/** True if the server rejects the user, or the user lacks the permission. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error &&
  (["AuthorizationError", "UserAuthenticationExpiredError", "PermissionViolationError"].includes(error.name) ||
    isRefusal(error.cause));

/** True if nobody received the message: no stream has its subject, or JetStream is missing. */
export const isUnheard = (error: unknown): boolean =>
  error instanceof Error &&
  (["JetStreamNotEnabled", "NoRespondersError"].includes(error.name) || isUnheard(error.cause));

/** True if JetStream is missing. Not true if merely no stream received a message. */
const isOff = (error: unknown): boolean =>
  error instanceof Error &&
  (isStatus(error, ...off) ||
    (!isRefusal(error) && "subject" in error && String(error.subject).startsWith("$JS.API.")) ||
    isOff(error.cause));

/** The error for a connection that could not be made. Mentions no details of the servers but their addresses. */
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

/** @param what the operation that failed */
export function natsFault(error: unknown, what: string): WatchfireError {
  if (error instanceof WatchfireError) return error;
  const told = (code: ErrorCode, hint?: string) =>
    new WatchfireError(code, { what: `${what}: ${reason(error)}`, cause: error, ...(hint && { hint }) });
  if (isOff(error)) return told("WF_CHECKPOINT_NATS_JETSTREAM");
  const answer = error instanceof Error && "code" in error ? Number(error.code) : 0;
  const room = full[answer];
  if (room) return told("WF_CHECKPOINT_NATS_FULL", `${room}; until then events wait, and nothing is lost`);
  if (leaderless.includes(answer)) return told("WF_CHECKPOINT_NATS_AWAY");
  // JetStream itself answered.
  if (isRefusal(error) || (answer > 0 && answer !== 503)) return told("WF_CHECKPOINT_NATS", unfit[answer]);
  return told("WF_CHECKPOINT_NATS_AWAY");
}

/**
 * The error for a slot whose checkpoints cannot be read. The remedy is the one after a loss, for this slot alone.
 * @param why such as `its snapshot is gone`
 */
export const corrupt = (
  { logStream, logSubject }: { readonly logStream: string; readonly logSubject: string },
  slot: string,
  why: string,
  cause?: unknown,
): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_CORRUPT", {
    what: `the checkpoints of ${logSubject}.${slot} on NATS cannot be used: ${why}`,
    hint: `run \`nats stream purge ${logStream} --subject ${logSubject}.${slot}\`: the slot then starts without checkpoints, lists everything, and flags possible repeats. Or end all replicas, and restore the streams from a copy`,
    cause,
  });

const reason = (error: unknown): string => lowerFirst(error instanceof Error ? error.message : String(error));
