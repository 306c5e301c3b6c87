import { type ErrorEntry, system, user } from "./entry.ts";

/** Errors of checkpoints on NATS JetStream. */
export const natsCodes = {
  WF_CHECKPOINT_NATS: user(
    "checkpoints cannot be stored on this NATS",
    "check --nats, its credentials, its certificate and the account's rights: runtime/docs/nats.md lists what it needs",
  ),
  WF_CHECKPOINT_NATS_AWAY: system(
    "NATS does not answer",
    "restore it, or its connection to the runtime; until then events wait, and nothing is lost",
  ),
  WF_CHECKPOINT_NATS_JETSTREAM: user(
    "this NATS has no JetStream enabled, or not for the account",
    "enable it for the server and the account; its log says why it went off; until then events wait, and nothing is lost",
  ),
  WF_CHECKPOINT_NATS_FULL: user(
    "a limit of JetStream's storage is reached: it accepts nothing more",
    "raise the limit that the message names, or free what others store there; until then events wait, and nothing is lost",
  ),
  WF_CHECKPOINT_NATS_FORGETS: user(
    "a stream of checkpoints has limits that make it drop messages",
    "remove these limits from the stream, for example with `nats stream edit`, or let it refuse new messages (discard: new); limit the account instead",
  ),
  WF_CHECKPOINT_NATS_CLIENT: user(
    "the client of NATS is not installed",
    "run `npm install @nats-io/transport-node@3.4.0 @nats-io/jetstream@3.4.0 @nats-io/obj@3.4.0`; the image has it",
  ),
  WF_CHECKPOINT_UNPLACED: user(
    "no Lease says which of the checkpoints on NATS are valid",
    "nothing is lost while it waits. Name the valid set on the runtime's Lease: runtime/docs/nats.md#no-lease-says-where-checkpoints-are has the command. It then continues by itself",
  ),
  WF_CHECKPOINT_REWOUND: system(
    "NATS has lost checkpoints that it had acknowledged",
    "nothing need be done for delivery: the next start lists everything and flags possible redeliveries. Find out why the streams are gone, empty or older",
  ),
} as const satisfies Record<string, ErrorEntry>;
