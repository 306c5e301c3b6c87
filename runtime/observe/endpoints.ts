import type { AddressInfo } from "node:net";
import { type ServerType, serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { WatchfireError } from "../errors.ts";

/** A parked event as a person sees it in a list. */
export interface DeadLetterSummary {
  readonly id: string;
  readonly function: string;
}

/** The dead letters as the endpoints offer them; `undefined` and `false` mean that there is none of that id. */
export interface DeadLetterDesk {
  list(): Promise<readonly DeadLetterSummary[]>;
  show(id: string): Promise<object | undefined>;
  replay(id: string): Promise<boolean>;
  drop(id: string): Promise<boolean>;
}

/** What the endpoints ask of the runtime. */
export interface Inspection {
  /** False when the process must be restarted. */
  live(): boolean;
  /** True once every function that can run has caught up with its first list. */
  ready(): boolean;
  status(): object;
  /** Prometheus text. */
  metrics(): Promise<string>;
  readonly deadLetters: DeadLetterDesk;
}

export interface Endpoints {
  /** `http://host:port` as it was bound. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves `/livez`, `/readyz`, `/metrics` and `/status` on `host:port`, and the dead letters to this machine alone: their
 * bodies may hold secrets, and replaying runs code. A request with an Origin, or for a Host that is no loopback name, is
 * a web page's and is refused there.
 * @throws WatchfireError WF_OBSERVE_LISTEN when the address cannot be bound
 */
export async function serveEndpoints(host: string, port: number, inspection: Inspection): Promise<Endpoints> {
  const server = await listen(routes(inspection), host, port);
  const { address, port: bound, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      }),
  };
}

/** The routes alone; tests ask them without a socket. */
export function routes(inspection: Inspection): Hono {
  const app = new Hono();
  app.get("/livez", (c) => (inspection.live() ? c.text("ok\n") : c.text("not live\n", 503)));
  app.get("/readyz", (c) => (inspection.ready() ? c.text("ok\n") : c.text("not ready\n", 503)));
  app.get("/status", (c) => c.json(inspection.status()));
  app.get("/metrics", async (c) =>
    c.body(await inspection.metrics(), 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }),
  );

  app.use("/dead-letters/*", async (c, next) => {
    const peer = getConnInfo(c).remote.address;
    if (!isLoopback(peer) || c.req.header("origin") !== undefined || !isLoopbackHost(c.req.header("host"))) {
      return c.json({ error: "dead letters are served to this machine alone" }, 403);
    }
    return next();
  });
  const desk = inspection.deadLetters;
  const missing = (id: string) => ({ error: `there is no dead letter ${id}` });
  app.get("/dead-letters", async (c) => c.json(await desk.list()));
  app.get("/dead-letters/:id", async (c) => {
    const found = await desk.show(c.req.param("id"));
    return found ? c.json(found) : c.json(missing(c.req.param("id")), 404);
  });
  app.post("/dead-letters/:id/replay", async (c) => {
    const done = await desk.replay(c.req.param("id"));
    return done ? c.json({}, 202) : c.json(missing(c.req.param("id")), 404);
  });
  app.delete("/dead-letters/:id", async (c) => {
    const done = await desk.drop(c.req.param("id"));
    return done ? c.json({}) : c.json(missing(c.req.param("id")), 404);
  });
  app.notFound((c) => c.json({ error: "there are /livez, /readyz, /metrics, /status and /dead-letters" }, 404));
  return app;
}

function listen(app: Hono, host: string, port: number): Promise<ServerType> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname: host, port }, () => resolve(server));
    server.on("error", (cause) => {
      reject(
        new WatchfireError("WF_OBSERVE_LISTEN", {
          what: `cannot listen on ${host}:${port}`,
          actual: cause.message,
          cause,
        }),
      );
    });
  });
}

const isLoopback = (address: string | undefined): boolean =>
  address !== undefined && (address === "::1" || /^(::ffff:)?127\./.test(address));

const isLoopbackHost = (host: string | undefined): boolean =>
  host !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);
