// The NATS client. Only loaded if NATS is used. The names are imported one by one, because a bundle cannot resolve a CommonJS
// package's names otherwise.
import * as jetstream from "@nats-io/jetstream";
import * as objects from "@nats-io/obj";
import * as transport from "@nats-io/transport-node";

export const client = { transport, jetstream, objects };
