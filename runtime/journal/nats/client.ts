// What talks to NATS; loaded by nobody who has none. Imported by name: a bundle knows no other way to a CommonJS package's names.
import * as jetstream from "@nats-io/jetstream";
import * as objects from "@nats-io/obj";
import * as transport from "@nats-io/transport-node";

export const client = { transport, jetstream, objects };
