import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Connections at once. A Prometheus, a kubelet and a person have a handful. */
const most = 128;

/** How long a connection may take for its request, and stand idle, in milliseconds; and bytes of a request's head. */
export const serverLimits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 8_192,
} as const;
/** Milliseconds without a byte in either direction: a reader that stands still is let go of. */
const idleMs = 15_000;

/**
 * Lets no server have more than 128 connections: one more ends that which has been silent longest. So a probe is
 * answered though others hold every connection open. Each connection serves one request. Node would begin all requests
 * that are sent in one piece before the first answer is taken. `/metrics` costs a hundred times what asking for it
 * costs.
 */
export function limitConnections(server: Server): void {
  const open = new Set<Socket>();
  server.setTimeout(idleMs);
  server.maxRequestsPerSocket = 1;
  server.on("dropRequest", (_, socket) => socket.destroy());
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    const [silent] = open;
    if (open.size > most) silent?.destroy();
  });
  server.on("request", ({ socket }) => {
    if (open.delete(socket)) open.add(socket);
  });
}
