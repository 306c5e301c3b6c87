import "./web-classes.ts";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { type ServerType, serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { shorten, systemReason } from "../base/wording.ts";
import { limitConnections, serverLimits } from "./connections.ts";
import type { ControlEnv } from "./control-api.ts";
import { answerFailure, type ControlParts, controlRoutes } from "./control-routes.ts";
import { isLoopback, isLoopbackHost, isOwnHost } from "./hosts.ts";
import { UnderWay } from "./under-way.ts";

/** Largest body of a request, in bytes: a thousand ids of dead letters. It is read before the caller is known. */
export const mostBodyBytes = 256 * 1024;

/** The parts of the runtime that the endpoints use. */
export interface Inspection extends ControlParts {
  /** False if the process must be restarted. */
  live(): boolean;
  /** True once every function that can run has processed its first list. */
  ready(): boolean;
  /** Why it is not ready. */
  obstacle(): string | undefined;
  /** Why nothing can be saved at present. */
  unsaved(): WatchfireError | undefined;
  status(): object;
  /** The metrics as Prometheus text. */
  metrics(): Promise<string>;
  /** Admits callers of the dead letters, of explanations and of operations on functions: those who may do what they ask. */
  readonly gate: MiddlewareHandler;
  readonly clock: Clock;
  /** Loads the console, which serves `control` below `/api` to its own sessions. Absent: there is no console. */
  readonly console?: ((control: Hono<ControlEnv>) => Promise<Hono>) | undefined;
  /** Loads what answers for the other replicas of a fleet as well. Absent, or `undefined`: this one answers for itself. */
  readonly fleet?: (control: Hono<ControlEnv>) => Promise<MiddlewareHandler | undefined>;
}

export interface Endpoints {
  /** `http://host:port` as bound. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `/livez`, `/readyz`, `/metrics` and `/status` on `host:port`. Dead letters, explanations and operations on functions are
 * only served to this machine (the containers of a pod share its loopback), and only to callers whom the gate admits, because
 * bodies may contain secrets and replaying runs code. There, requests with an Origin, or for a Host that is not a loopback name, come from
 * web pages and are refused. `/metrics` and `/status` are refused to requests for a Host that could be a web page's
 * (`isOwnHost`). Probes may name any host; `/readyz` then returns no reason.
 * @param spare number of ports after `port` to try if it is in use
 * @throws WatchfireError WF_OBSERVE_LISTEN if the address cannot be bound
 */
export async function serveEndpoints(
  host: string,
  port: number,
  inspection: Inspection,
  spare = 0,
): Promise<Endpoints> {
  const server = await listenFrom(routes(inspection, [host, hostname()]), host, port, spare);
  const { address, port: bound, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`,
    port: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      }),
  };
}

/** Routes whose answers may contain secrets or lists of a cluster's objects, or which start or stop handlers. */
const guarded = [
  ["/dead-letters/*", "dead letters"],
  ["/explain/*", "explanations"],
  ["/functions/*", "a function's runs, logs and commands"],
  ["/support", "support reports"],
] as const;

/** Routes about one function, whose shards may be with other replicas. */
const ofFunctions = ["/explain/*", "/functions/*"] as const;

/** Creates the routes. `own`: names of this process that a Host header may contain. */
function routes(inspection: Inspection, own: readonly string[] = []): Hono {
  const app = new Hono();
  const underWay = new UnderWay(inspection.clock, () => inspection.unsaved());
  const names = own.map((name) => name.toLowerCase());
  app.get("/livez", (c) => (inspection.live() ? c.text("ok\n") : c.text("not live\n", 503)));
  const isForeign = (host: string | undefined): host is string => host !== undefined && !isOwnHost(host, names);
  app.get("/readyz", (c) => {
    if (inspection.ready()) return c.text("ok\n");
    // The reason may name functions and objects.
    const why = isForeign(c.req.header("host")) ? undefined : inspection.obstacle()?.replace(/\s*\n\s*/g, " ");
    return c.text(why === undefined ? "not ready\n" : `not ready: ${why}\n`, 503);
  });
  const tooLarge = { error: `a body has at most ${mostBodyBytes} bytes` };
  app.use(bodyLimit({ maxSize: mostBodyBytes, onError: (c) => c.json(tooLarge, 413) }));
  const control = controlRoutes(inspection, underWay);
  const { console } = inspection;
  if (console) {
    let loaded: Promise<Hono> | undefined;
    app.use(async (c, next) => {
      if (!isForConsole(c)) return next();
      loaded ??= console(control).catch((error: unknown) => {
        loaded = undefined; // no failure is kept
        throw error;
      });
      return (await loaded).fetch(c.req.raw, c.env);
    });
  }
  for (const path of ["/status", "/metrics"]) {
    app.use(path, async (c, next) => {
      const host = c.req.header("host");
      if (!isForeign(host)) return next();
      return c.json(
        { error: `${shorten(host)} is not a name of this process: ask by its address or its Service's name` },
        403,
      );
    });
  }
  app.get("/status", (c) => c.json(inspection.status()));
  app.get("/metrics", async (c) =>
    c.body(await inspection.metrics(), 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }),
  );

  for (const [path, what] of guarded) {
    app.use(path, async (c, next) => {
      const peer = getConnInfo(c).remote.address;
      if (!isLoopback(peer) || c.req.header("origin") !== undefined || !isLoopbackHost(c.req.header("host"))) {
        return c.json({ error: `${what} are served only to this machine` }, 403);
      }
      return next();
    });
    app.use(path, inspection.gate);
  }
  const { fleet } = inspection;
  if (fleet) {
    let answers: MiddlewareHandler | undefined;
    for (const path of ofFunctions) {
      app.use(path, async (c, next) => {
        answers ??= await fleet(control);
        return answers ? answers(c, next) : next();
      });
    }
  }
  app.route("/", control);
  app.onError(answerFailure);
  app.notFound((c) =>
    c.json(
      { error: "there are /livez, /readyz, /metrics, /status, /dead-letters, /explain, /functions and /support" },
      404,
    ),
  );
  return app;
}

/** The routes that have no page: a browser gets them as a program does. Any other path is the console's, which says if it has no such page. */
const pageless =
  /^\/(?:(?:livez|readyz|healthz|metrics|status|support|functions)$|(?:dead-letters|explain)\/|functions\/[^/]+\/)/;

/** Whether the console answers a request: for its API or its files, or of a browser that opens a page. */
function isForConsole({ req }: Context): boolean {
  if (/^\/(?:api|console)\//.test(req.path)) return true;
  return req.method === "GET" && !pageless.test(req.path) && (req.header("accept")?.includes("text/html") ?? false);
}

async function listenFrom(app: Hono, host: string, port: number, spare: number): Promise<ServerType> {
  try {
    return await listen(app, host, port);
  } catch (error) {
    const isTaken = error instanceof WatchfireError && (error.cause as NodeJS.ErrnoException).code === "EADDRINUSE";
    if (!isTaken || spare === 0) throw error;
    return listenFrom(app, host, port + 1, spare - 1);
  }
}

function listen(app: Hono, host: string, port: number): Promise<ServerType> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname: host, port, serverOptions: serverLimits }, () =>
      resolve(server),
    );
    limitConnections(server as Server);
    server.on("error", (cause) => {
      reject(
        new WatchfireError("WF_OBSERVE_LISTEN", {
          what: `cannot listen on ${host}:${port}: ${systemReason(cause)}`,
          cause,
        }),
      );
    });
  });
}
