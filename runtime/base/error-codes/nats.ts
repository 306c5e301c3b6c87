import { type ErrorEntry, system, user } from "./entry.ts";

/** Errors of checkpoints on NATS JetStream. */
export const natsCodes = {
  WF_CHECKPOINT_NATS: user(
    "positions cannot be kept on this NATS",
    "check --nats, its credentials, its certificate and the account's rights: runtime/docs/nats.md lists what it needs",
  ),
  WF_CHECKPOINT_NATS_AWAY: system(
    "NATS does not answer",
    "bring it back, or let the runtime reach it; until then events wait, and nothing is lost",
  ),
  WF_CHECKPOINT_NATS_JETSTREAM: user(
    "this NATS has no JetStream enabled, or not for the account",
    "enable it for the server and the account; its log says why it went off; until then events wait, and nothing is lost",
  ),
  WF_CHECKPOINT_NATS_FULL: user(
    "a limit of JetStream's storage is reached: it takes nothing more",
    "raise the limit that the message names, or free what others store there; until then events wait, and nothing is lost",
  ),
  WF_CHECKPOINT_NATS_FORGETS: user(
    "a stream of positions has limits by which it forgets messages",
    "take these limits off the stream, as by `nats stream edit`, or let it refuse what is too much (discard: new); limit the account instead",
  ),
  WF_CHECKPOINT_NATS_CLIENT: user(
    "the client of NATS is not installed",
    "run `npm install @nats-io/transport-node@3.4.0 @nats-io/jetstream@3.4.0 @nats-io/obj@3.4.0`; the image has it",
  ),
  WF_CHECKPOINT_UNPLACED: user(
    "no Lease says which of the positions on NATS count",
    "nothing is lost while it waits. Say on the runtime's Lease which set counts: runtime/docs/nats.md#no-lease-says-where-positions-are has the command. It goes on by itself then",
  ),
  WF_CHECKPOINT_REWOUND: system(
    "NATS has lost positions that it had acknowledged",
    "nothing is to be done for delivery: the next start lists everything and flags what may be a repeat. Find out why the streams are gone, empty or older",
  ),
} as const satisfies Record<string, ErrorEntry>;
