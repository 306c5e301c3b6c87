import "./web-classes.ts";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { type ServerType, serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { shorten, systemReason } from "../base/wording.ts";
import type { DeadLetter, DeadLetterSummary } from "../journal/batch.ts";
import type { DeadLetterPage } from "../journal/checkpoint.ts";
import { limitConnections, serverLimits } from "./connections.ts";
import { type ControlApi, functionRoutes } from "./control-api.ts";
import { deadLetterId, describeDeadLetter, describeFailure, describeSummary } from "./dead-letter.ts";
import { type ExplainQuestion, type Explanation, nameSchema, namespaceSchema } from "./explanation.ts";
import { isOwnHost } from "./hosts.ts";
import { bears } from "./token-file.ts";
import { UnderWay } from "./under-way.ts";

/** The dead letters, as used by the endpoints. Unknown ids are refused with WF_CHECKPOINT_NO_DEAD_LETTER. */
export interface DeadLetterService {
  list(page: Pick<DeadLetterPage, "after" | "function">): Promise<readonly DeadLetterSummary[]>;
  show(id: string): Promise<DeadLetter>;
  replay(ids: readonly string[]): Promise<void>;
  drop(ids: readonly string[]): Promise<void>;
}

/** One call replays or drops at most this many. The caller splits a longer list. */
const idsSchema = z.strictObject({ ids: z.array(z.string().max(200)).min(1).max(1000) });

const objectSchema = z.object({ namespace: namespaceSchema, name: nameSchema });

/** The parts of the runtime that the endpoints use. */
export interface Inspection {
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
  /** Token required for the dead letters, for explanations and for operations on functions. */
  readonly token: string;
  /** @throws WatchfireError WF_LEASE_STANDBY if another replica has them */
  deadLetters(): DeadLetterService;
  /** Explains why a function's handler did not run for an object. Rejects with WF_RUNTIME_NO_FUNCTION or WF_LEASE_STANDBY. */
  explain(question: ExplainQuestion): Promise<Explanation>;
  /** Operations on one function. */
  readonly functions: ControlApi;
  readonly clock: Clock;
}

export interface Endpoints {
  /** `http://host:port` as bound. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `/livez`, `/readyz`, `/metrics` and `/status` on `host:port`. Dead letters, explanations and operations on functions are
 * only served to this machine (the containers of a pod share its loopback), and only to callers with the token, because bodies
 * may contain secrets and replaying runs code. There, requests with an Origin, or for a Host that is not a loopback name, come from
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

/** HTTP status by error code. All other errors are answered with 500. */
const statuses: { readonly [code in ErrorCode]?: 401 | 404 | 409 | 503 } = {
  WF_OBSERVE_TOKEN: 401,
  WF_CHECKPOINT_NO_DEAD_LETTER: 404,
  WF_CHECKPOINT_LETTER_HOMELESS: 409,
  WF_CHECKPOINT_LETTER_EMPTY: 409,
  WF_LEASE_STANDBY: 503,
  WF_RUNTIME_PENDING: 503,
  WF_RUNTIME_BUSY: 503,
  WF_RUNTIME_NO_FUNCTION: 404,
  WF_RUNTIME_PAUSED_BY_MANIFEST: 409,
  WF_RUNTIME_NO_RUN: 404,
  WF_RUNTIME_NOT_REDELIVERED: 409,
  WF_RUNTIME_NOT_RECORDED: 409,
};

/** Routes whose answers may contain secrets or lists of a cluster's objects, or which start or stop handlers. */
const guarded = [
  ["/dead-letters/*", "dead letters"],
  ["/explain/*", "explanations"],
  ["/functions/*", "a function's runs, logs and commands"],
] as const;

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
  for (const path of ["/status", "/metrics"]) {
    app.use(path, async (c, next) => {
      const host = c.req.header("host");
      if (!isForeign(host)) return next();
      return c.json(
        { error: `${shorten(host)} is no name of this process: ask by its address or its Service's name` },
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
        return c.json({ error: `${what} are served to this machine alone` }, 403);
      }
      const header = c.req.header("authorization");
      if (!bears(header, inspection.token)) {
        const what = `the request bears ${header === undefined ? "no" : "another"} token`;
        throw new WatchfireError("WF_OBSERVE_TOKEN", { what });
      }
      return next();
    });
  }
  app.get("/explain/:function", async (c) => {
    const asked = objectSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: "the query is namespace=NAMESPACE&name=NAME, of an object" }, 400);
    return c.json(await inspection.explain({ function: c.req.param("function"), ...asked.data }));
  });
  app.route("/functions", functionRoutes(inspection.functions, underWay));
  const desk = () => inspection.deadLetters();
  app.get("/dead-letters", async (c) => {
    const after = c.req.query("after");
    if (after !== undefined && !deadLetterId.test(after))
      return c.json({ error: "after takes a dead letter's id" }, 400);
    return c.json((await desk().list({ after, function: c.req.query("function") })).map(describeSummary));
  });
  app.get("/dead-letters/:id", async (c) => c.json(describeDeadLetter(await desk().show(c.req.param("id")))));
  for (const action of ["replay", "drop"] as const) {
    app.post(`/dead-letters/${action}`, async (c) => {
      const asked = idsSchema.safeParse(await c.req.json().catch(() => undefined));
      if (!asked.success) return c.json({ error: 'the body is {"ids": ["…"]}' }, 400);
      const { ids } = asked.data;
      await underWay.answer(`the ${action} of dead letters`, () => desk()[action](ids));
      return c.json({});
    });
  }
  app.onError((error, c) => {
    const status = error instanceof WatchfireError ? statuses[error.code] : undefined;
    return c.json(describeFailure(error), status ?? 500);
  });
  app.notFound((c) =>
    c.json({ error: "there are /livez, /readyz, /metrics, /status, /dead-letters, /explain and /functions" }, 404),
  );
  return app;
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

const isLoopback = (address: string | undefined): boolean =>
  address !== undefined && (address === "::1" || /^(::ffff:)?127\./.test(address));

const isLoopbackHost = (host: string | undefined): boolean =>
  host !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host);
