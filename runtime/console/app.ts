import { gzipSync } from "node:zlib";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { streamSSE } from "hono/streaming";
import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { nameOf } from "../control/access/caller.ts";
import { withoutSecrets } from "../control/record/redaction.ts";
import type { ConsoleTools } from "../dev/console-tools.ts";
import type { ControlEnv } from "../observe/control-api.ts";
import { answerFailure } from "../observe/control-routes.ts";
import { type DeadLetterDetail, describeDeadLetter } from "../observe/dead-letter.ts";
import { mostBodyBytes } from "../observe/endpoints.ts";
import { codeMs } from "./access.ts";
import { runQuestionSchema } from "./api-routes.ts";
import { type ConsoleAssets, consoleAssets } from "./assets.ts";
import { ChangeFeed } from "./change-feed.ts";
import { FleetAnswers, type FleetAnswersParts } from "./fleet-answers.ts";
import { cookieName, Guard, type GuardParts } from "./guard.ts";
import { Inquiry, type InquiryParts } from "./inquiry.ts";
import type { MetricSeries } from "./metric-series.ts";
import { openApi } from "./openapi.ts";
import { iconSvg, pageHtml, securityHeaders } from "./page.ts";
import {
  applyQuestionSchema,
  changesQuestionSchema,
  loginQuestionSchema,
  runsQuestionSchema,
  type SessionAnswer,
  seriesQuestionSchema,
  sessionQuestionSchema,
  type Topic,
} from "./schemas.ts";

/** Most streams at a time. */
const mostStreams = 16;
/** A stream sends something so often, in milliseconds: the endpoints close a connection after 15 s without a byte. */
const beatMs = 5_000;
/** After so long a stream ends, and the page opens another: its session is looked at again. */
const streamMs = 10 * 60_000;

export interface ConsoleParts extends GuardParts, InquiryParts {
  /** The samples of the last hour. */
  readonly series: Pick<MetricSeries, "describe" | "bytesPerSecond">;
  /** The commands' routes, without guards. */
  readonly control: Hono<ControlEnv>;
  /** The connection to the other replicas of the fleet. Absent: they are not asked. */
  readonly link?: FleetAnswersParts["link"] | undefined;
  /** The abilities of `watchfire dev`. Absent elsewhere: there are no routes for them. */
  readonly tools?: ConsoleTools | undefined;
  readonly clock: Clock;
  /** Default: bundled from the sources, or embedded in a package. */
  readonly assets?: () => Promise<ConsoleAssets>;
}

/** Creates the console: its pages, its files, and `/api`. */
export async function consoleApp(parts: ConsoleParts): Promise<Hono> {
  const guard = new Guard(parts);
  const app = new Hono();
  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(securityHeaders)) c.res.headers.set(name, value);
  });
  app.use(guard.ownPagesOnly);
  app.use("/api/*", async (c, next) => {
    await next();
    c.res.headers.set("cache-control", "no-store");
  });
  app.route("/api/session", sessionRoutes(parts, guard));
  app.post("/api/login-codes", async (c) =>
    c.json({ code: parts.access.newCode(await guard.bearerOf(c)), expiresInSeconds: codeMs / 1000 }),
  );
  app.use("/api/*", guard.knownCallersOnly);
  const fleet = fleetAnswers(parts);
  if (fleet) app.use("/api/*", fleet);
  app.route("/api", inquiryRoutes(parts));
  app.route("/api", parts.control);
  app.route("/", await files(parts.assets ?? consoleAssets));
  app.onError(answerFailure);
  app.notFound((c) => c.json({ error: "the console has no such path; /api/openapi.json describes its API" }, 404));
  return app;
}

/** Returns what answers for the whole fleet: for the console, and for the commands. `undefined` without a connection to other replicas. */
export function fleetAnswers(parts: ConsoleParts): MiddlewareHandler | undefined {
  const { link } = parts;
  const fleet = () => parts.status().fleet;
  return link && new FleetAnswers({ link, fleet, own: replicaApi(parts) }).handle;
}

/** Creates the API as another replica of the fleet asks it: for this replica alone. The first replica has checked the caller's rights. */
export function replicaApi(parts: ConsoleParts): Hono {
  const app = new Hono<ControlEnv>();
  app.use(async (c, next) => {
    c.set("redact", withoutSecrets);
    c.set("isPart", true);
    await next();
  });
  app.use(bodyLimit({ maxSize: mostBodyBytes }));
  app.route("/api", inquiryRoutes(parts));
  app.route("/api", parts.control);
  app.onError(answerFailure);
  return app as unknown as Hono;
}

function sessionRoutes({ access, gate, tools }: ConsoleParts, guard: Guard): Hono {
  const app = new Hono();
  app.post("/", async (c) => {
    const asked = loginQuestionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return c.json({ error: 'the body is {"code": "…"} or {"token": "…"}' }, 400);
    if (c.req.header("origin") === undefined) return c.json({ error: "a login names its Origin" }, 403);
    const { data } = asked;
    const keys =
      "code" in data ? access.login(data.code) : access.begin(await gate.identify(`Bearer ${data.token.trim()}`));
    const session = keys && access.sessionOf(keys.cookie, keys.proof);
    if (!keys || !session) {
      throw new WatchfireError("WF_OBSERVE_TOKEN", {
        what: "the login link was used already, or is too old",
        hint: "`watchfire console` prints another",
      });
    }
    const options = { httpOnly: true, sameSite: "Strict", path: "/" } as const;
    setCookie(c, cookieName(c), keys.cookie, options);
    guard.loggedIn(c, keys.number, session.caller);
    return c.json({ proof: keys.proof });
  });
  app.get("/", async (c) => {
    const asked = sessionQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: "the query is function=NAME" }, 400);
    const { caller } = await guard.callerOf(c);
    const fault = await gate.update(caller, asked.data.function);
    const answer: SessionAnswer = {
      who: nameOf(caller),
      mayUpdate: fault === undefined,
      isDev: tools !== undefined,
      ...(fault && { why: `${fault.detail.what}; ${fault.hint}` }),
    };
    return c.json(answer);
  });
  app.delete("/", async (c) => {
    await guard.callerOf(c);
    access.logout(getCookie(c, cookieName(c)) ?? "");
    deleteCookie(c, cookieName(c), { path: "/" });
    return c.json({});
  });
  return app;
}

/** The routes that join what the commands ask one by one. */
function inquiryRoutes(parts: ConsoleParts): Hono {
  const app = new Hono();
  const inquiry = new Inquiry(parts);
  const changes = new ChangeFeed(() => parts.status(), parts.clock);
  app.get("/openapi.json", (c) => c.json(openApi(parts.tools !== undefined)));
  app.get("/overview", (c) => c.json(inquiry.overview()));
  app.get("/functions", (c) => c.json({ functions: parts.status().functions }));
  app.get("/functions/:name", (c, next) => {
    const name = c.req.param("name");
    return name === "logs" || name === "runs" ? next() : Promise.resolve(c.json(inquiry.describe(name)));
  });
  app.get("/config", (c) => c.json(parts.configuration()));
  app.get("/metrics/series", (c) => {
    const asked = seriesQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: questionFault(asked.error.issues) }, 400);
    return c.json(parts.series.describe(asked.data));
  });
  app.get("/functions/:name/source", (c) => c.json(inquiry.source(c.req.param("name"))));
  app.get("/functions/:name/revisions", async (c) => c.json(await inquiry.revisions(c.req.param("name"))));
  app.get("/functions/:name/time", async (c) => c.json(await inquiry.time(c.req.param("name"))));
  app.get("/changes", async (c) => {
    const asked = changesQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: "the query is function=NAME" }, 400);
    return c.json(await inquiry.changes(asked.data.function));
  });
  app.get("/sources", (c) => c.json(inquiry.sources()));
  app.get("/runs", async (c) => {
    const asked = runsQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: questionFault(asked.error.issues) }, 400);
    return c.json(await inquiry.search(asked.data));
  });
  app.get("/runs/:id", async (c) => {
    const asked = runQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: "the query is function=NAME" }, 400);
    return c.json(await inquiry.run(asked.data.function, c.req.param("id")));
  });
  app.get("/runs/:id/event", async (c) => {
    const asked = runQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: "the query is function=NAME" }, 400);
    return c.json(await inquiry.received(asked.data.function, c.req.param("id")));
  });
  app.post("/runs/:id/fixture", async (c) => {
    const asked = runQuestionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return c.json({ error: 'the body is {"function": "NAME"}' }, 400);
    return c.json({ file: await inquiry.saveFixture(asked.data.function, c.req.param("id")) });
  });
  app.get("/errors/:fingerprint", async (c) => c.json(await inquiry.error(c.req.param("fingerprint"))));
  app.get("/errors", async (c) => c.json(await inquiry.errors()));
  app.get("/dead-letters/:id", async (c) => {
    const letter = describeDeadLetter(await parts.deadLetters().show(c.req.param("id")));
    return c.json(withoutSecrets(letter) as DeadLetterDetail);
  });
  // Changes of other replicas are not known here, so the pages of a fleet ask again with each beat.
  const mayHaveChanged = () => (parts.link && parts.link.others.length > 0 ? topics : []);
  if (parts.tools) app.route("/dev", devRoutes(parts.tools));
  app.get("/events", (c) => stream(c, changes, parts.clock, mayHaveChanged));
  return app;
}

/** The routes that only the console of `watchfire dev` has. */
function devRoutes(tools: ConsoleTools): Hono {
  const app = new Hono();
  app.get("/", (c) => c.json({ faults: tools.faults(), samples: tools.samples() }));
  app.post("/apply", async (c) => {
    const asked = applyQuestionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return c.json({ error: 'the body is {"text": "…"}, of YAML' }, 400);
    if (tools.samples() === undefined)
      return c.json({ error: "objects are applied to the embedded cluster alone" }, 409);
    try {
      return c.json(await tools.apply(asked.data.text));
    } catch (error) {
      // With the place in the text, as the terminal prints it.
      if (error instanceof WatchfireError) return c.json({ error: error.message }, 409);
      throw error;
    }
  });
  return app;
}

const questionFault = (
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
): string => issues.map(({ path, message }) => `${path.join(".") || "the query"}: ${message}`).join("; ");

const topics: readonly Topic[] = ["functions", "runs", "sources", "dead-letters"];

/** Sends what changed, until the page is closed. `mayHaveChanged`: topics that are sent with each beat. */
function stream(c: Context, changes: ChangeFeed, clock: Clock, mayHaveChanged: () => readonly Topic[]): Response {
  if (changes.listening >= mostStreams) return c.json({ error: `${mostStreams} pages are open already` }, 503);
  return streamSSE(c, async (sse) => {
    const closed = new AbortController();
    let changed = new Set<Topic>();
    let wake = () => {};
    sse.onAbort(() => closed.abort());
    closed.signal.addEventListener("abort", () => wake());
    const end = changes.listen((topics) => {
      for (const topic of topics) changed.add(topic);
      wake();
    });
    const until = clock.monotonic() + streamMs;
    try {
      await sse.writeSSE({ event: "open", data: "{}" });
      while (!closed.signal.aborted && clock.monotonic() < until) {
        if (changed.size === 0) {
          const beat = new AbortController();
          wake = () => beat.abort();
          await pause(clock, beatMs, beat.signal).catch(() => undefined);
        }
        const topics = changed.size === 0 ? mayHaveChanged() : [...changed];
        changed = new Set();
        if (closed.signal.aborted) break;
        await sse.writeSSE(
          topics.length === 0 ? { event: "beat", data: "{}" } : { event: "changed", data: JSON.stringify({ topics }) },
        );
      }
    } finally {
      end();
    }
  });
}

/** The page for every path, and its files. */
async function files(read: () => Promise<ConsoleAssets>): Promise<Hono> {
  const app = new Hono();
  const { script, style } = await read();
  const file = (path: string, type: string, text: string) => {
    const zipped = gzipSync(text);
    app.get(path, (c) => {
      const headers = {
        "content-type": `${type}; charset=utf-8`,
        "cache-control": "no-cache",
        vary: "accept-encoding",
      };
      if (!/\bgzip\b/.test(c.req.header("accept-encoding") ?? "")) return c.body(text, 200, headers);
      return c.body(zipped, 200, { ...headers, "content-encoding": "gzip" });
    });
  };
  file("/console/main.js", "text/javascript", script);
  file("/console/main.css", "text/css", style);
  file("/console/icon.svg", "image/svg+xml", iconSvg);
  app.get("*", (c) => {
    if (/^\/(?:api|console)\//.test(c.req.path)) return c.notFound();
    return c.html(pageHtml, 200, { "cache-control": "no-store", vary: "accept" });
  });
  return app;
}
