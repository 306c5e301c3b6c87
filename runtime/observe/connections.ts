import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Maximum number of simultaneous connections. A Prometheus, a kubelet and a person need a handful. */
const most = 128;

/**
 * Limits of the HTTP server: milliseconds that a connection may take for its request and be idle, and bytes of a request's head.
 */
export const serverLimits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 8_192,
} as const;
/** Milliseconds without a byte in either direction after which a connection is closed, including one whose reader has stopped. */
const idleMs = 15_000;

/**
 * Limits a server to 128 connections. One more closes the connection that has been silent for longest, so that probes are
 * answered even if others hold every connection open. Each connection serves one request, because Node would begin all pipelined
 * requests before the first answer is read, and answering `/metrics` costs a hundred times what the request costs.
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
