import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context, MiddlewareHandler } from "hono";
import { getCookie } from "hono/cookie";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { isLoopback, isLoopbackHost } from "../observe/hosts.ts";
import type { Logger } from "../observe/log.ts";
import { bears } from "../observe/token-file.ts";
import type { ConsoleAccess } from "./access.ts";

/** The header with the page's half of a session. */
const proofHeader = "x-watchfire-proof";

/** Refused writes that are logged are at least so far apart, in milliseconds. */
const refusalMs = 1_000;
/** Ids of one write that the audit log names. */
const mostNamed = 20;

export interface GuardParts {
  readonly access: ConsoleAccess;
  /** The data folder's token. */
  readonly token: string;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** Decides who may do what, and logs each write. */
export class Guard {
  private readonly parts: GuardParts;
  private refusedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: GuardParts) {
    this.parts = parts;
  }

  /** Refuses what comes from another machine, or from a web page of another origin. */
  readonly ownPagesOnly: MiddlewareHandler = async (c, next) => {
    const why = strangerness(c);
    if (why === undefined) return next();
    if (isWrite(c)) this.refused(c, why);
    return c.json({ error: why }, 403);
  };

  /** Requires the token, or a session; for a write by a session, that it comes from a page of the console. */
  readonly knownCallersOnly: MiddlewareHandler = async (c, next) => {
    const who = this.callerOf(c);
    if (who === undefined) {
      if (isWrite(c)) this.refused(c, "no valid token or session");
      throw new WatchfireError("WF_OBSERVE_TOKEN", {
        what: "the request has neither the token nor a session",
        hint: "log in by the link that `watchfire console` prints",
      });
    }
    const isForged = isWrite(c) && who !== "token" && c.req.header("origin") === undefined;
    if (isForged) {
      this.refused(c, "no Origin");
      return c.json({ error: "a write by a session needs its Origin" }, 403);
    }
    await next();
    if (isWrite(c)) await this.audit(c, who);
  };

  /** Requires the token itself: a session cannot make another one. */
  readonly tokenOnly: MiddlewareHandler = async (c, next) => {
    if (bears(c.req.header("authorization"), this.parts.token)) return next();
    throw new WatchfireError("WF_OBSERVE_TOKEN", { what: "the request does not have the token" });
  };

  /** `token`, `session N`, or nobody. */
  private callerOf(c: Context): string | undefined {
    const { access, token } = this.parts;
    const header = c.req.header("authorization");
    if (header !== undefined) return bears(header, token) ? "token" : undefined;
    const number = access.sessionOf(getCookie(c, cookieName(c)) ?? "", c.req.header(proofHeader) ?? "");
    return number === undefined ? undefined : `session ${number}`;
  }

  /** Logs that a browser has logged in. */
  loggedIn(c: Context, session: number): void {
    this.parts.log.info({ who: `session ${session}`, from: fromOf(c) }, "console login");
  }

  private async audit(c: Context, who: string): Promise<void> {
    const { method, path } = c.req;
    const asked: unknown = await c.req.json().catch(() => undefined);
    const name = /^\/api\/functions\/([^/]+)\//.exec(path)?.[1];
    this.parts.log.info(
      {
        who,
        action: `${method} ${path.split("/").at(-1)}`,
        ...(name !== undefined && { function: decodeURIComponent(name) }),
        ...(asked !== undefined && { asked: named(asked) }),
        status: c.res.status,
        from: fromOf(c),
      },
      "console write",
    );
  }

  /** A page that tries again and again must not fill the log. */
  private refused(c: Context, why: string): void {
    const { clock, log } = this.parts;
    const now = clock.monotonic();
    if (now - this.refusedAt < refusalMs) return;
    this.refusedAt = now;
    log.warn(
      { action: `${c.req.method} ${clean(c.req.path).slice(0, 200)}`, why, from: fromOf(c) },
      "console write refused",
    );
  }
}

/** The name of the session's cookie. All ports of a host share their cookies, so it contains the port. */
export const cookieName = (c: Context): string =>
  `watchfire-${/:(\d+)$/.exec(c.req.header("host") ?? "")?.[1] ?? "80"}`;

const isWrite = ({ req }: Context): boolean => req.method !== "GET" && req.method !== "HEAD";

/** Why a request does not come from this machine, from a program or a page of the console; `undefined` if it does. */
function strangerness(c: Context): string | undefined {
  const host = c.req.header("host");
  if (!isLoopback(getConnInfo(c).remote.address) || !isLoopbackHost(host)) {
    return "the console is served only to this machine";
  }
  const origin = c.req.header("origin");
  const site = c.req.header("sec-fetch-site") ?? "none";
  // A link on another page may open a page of the console. It holds no data.
  const isPage = c.req.method === "GET" && c.req.header("sec-fetch-mode") === "navigate";
  const isOther = (origin !== undefined && origin !== `http://${host}`) || !["same-origin", "none"].includes(site);
  return isOther && !isPage ? "the request comes from a web page of another origin" : undefined;
}

const fromOf = (c: Context): string =>
  `${getConnInfo(c).remote.address ?? ""} ${clean(c.req.header("user-agent") ?? "").slice(0, 120)}`.trim();

/** Returns the request's body with at most the first 20 ids. */
function named(asked: unknown): unknown {
  if (typeof asked !== "object" || asked === null || !("ids" in asked) || !Array.isArray(asked.ids)) return asked;
  return { count: asked.ids.length, ids: asked.ids.slice(0, mostNamed) };
}
