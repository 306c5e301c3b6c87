import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { type RequestInfo, requestInfo } from "../api/request-info.ts";
import { ApiError, forbidden, methodNotAllowed } from "../api/status.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Authorizer } from "../auth/authorizer.ts";
import type { User } from "../auth/user.ts";
import { ClusterError } from "../cluster-error.ts";
import type { Identity } from "../storage/state-file.ts";
import { systemReason } from "../storage/system-reason.ts";
import { Reply } from "./respond.ts";

/** Handlers of requests that are authenticated and authorized. */
interface Handlers {
  resource(
    request: IncomingMessage,
    reply: Reply,
    info: RequestInfo,
    query: URLSearchParams,
    user: User,
  ): Promise<void>;
  /** Handles the paths that are not resources. */
  other(request: IncomingMessage, reply: Reply, pathname: string): void;
  /** The administrator's `POST /watchfire.dev/compact`. */
  compact(): void;
}

/** The cluster's one additional path, which drops the history. */
const compactPath = "/watchfire.dev/compact";
/** How long an idle connection stays open, milliseconds: longer than Go's clients keep theirs (90 s). */
const keepAliveMs = 120_000;

/** HTTPS server on loopback: authenticates and authorizes requests, and passes them to the handlers. */
export class ApiServer {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly authenticator: Authenticator;
  private readonly authorizer: Authorizer;
  private readonly handlers: Handlers;

  constructor(identity: Identity, authenticator: Authenticator, authorizer: Authorizer, handlers: Handlers) {
    this.authenticator = authenticator;
    this.authorizer = authorizer;
    this.handlers = handlers;
    this.server = createServer({ key: identity.key, cert: identity.certificate, ALPNProtocols: ["http/1.1"] });
    this.server.requestTimeout = 0;
    this.server.keepAliveTimeout = keepAliveMs;
    this.server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.once("close", () => this.sockets.delete(socket));
    });
    this.server.on("request", (request, response) => void this.answer(request, response));
    this.server.on("tlsClientError", (_error, socket) => socket.destroy());
  }

  /** Listens on loopback and returns the port. Rejects with WF_DEV_CLUSTER_PORT if the port cannot be used. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const refuse = (cause: Error) => reject(portRefused(port, cause));
      this.server.once("error", refuse);
      this.server.listen(port, "127.0.0.1", () => {
        this.server.off("error", refuse);
        resolve((this.server.address() as AddressInfo).port);
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeIdleConnections();
      // The connections that are still open carry responses in progress, watches, which the store has ended, or unfinished
      // handshakes.
      setImmediate(() => {
        for (const socket of this.sockets) socket.destroy();
      });
    });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reply = new Reply(request, response);
    try {
      const url = new URL(`https://localhost${request.url}`);
      const method = request.method ?? "GET";
      const info = requestInfo(method, url.pathname, url.searchParams);
      const user = this.authenticator.authenticate(request);
      this.allow(user, info, url.searchParams);
      if (info.isResource) await this.handlers.resource(request, reply, info, url.searchParams, user);
      else if (url.pathname === compactPath && method === "POST") {
        this.handlers.compact();
        reply.json(200, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" });
      } else if (method === "GET" || method === "HEAD") this.handlers.other(request, reply, url.pathname);
      else throw methodNotAllowed();
    } catch (error) {
      reply.failure(error);
    }
  }

  private allow(user: User, info: RequestInfo, query: URLSearchParams): void {
    const why = this.authorizer.refusal(user, info, query);
    if (why === undefined) return;
    if (info.isResource) throw forbidden({ group: info.group, plural: info.resource }, info.name, why);
    throw new ApiError(403, "Forbidden", `forbidden: ${why}`, {});
  }
}

function portRefused(port: number, cause: Error): ClusterError {
  const what = `cannot listen on 127.0.0.1: ${systemReason(cause)}`;
  return new ClusterError("PORT_REFUSED", { what, port, cause });
}
