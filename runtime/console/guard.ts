import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context, MiddlewareHandler } from "hono";
import { getCookie } from "hono/cookie";
import { WatchfireError } from "../base/errors.ts";
import { type ApiCaller, nameOf } from "../control/access/caller.ts";
import { fromOf, type Gate } from "../control/access/gate.ts";
import { isLoopback, isLoopbackHost } from "../observe/hosts.ts";
import type { Logger } from "../observe/log.ts";
import type { ConsoleAccess } from "./access.ts";

/** The header with the page's half of a session. */
const proofHeader = "x-watchfire-proof";

export interface GuardParts {
  readonly access: ConsoleAccess;
  /** Knows what callers may do, and logs what they change. */
  readonly gate: Gate;
  readonly log: Pick<Logger, "info">;
}

/** Whoever sends a request. */
interface KnownCaller {
  readonly caller: ApiCaller;
  /** The number of the session; `undefined` for a program with a token. */
  readonly session: number | undefined;
}

/** Decides who may use the console and its API. The gate decides what a caller may do there. */
export class Guard {
  private readonly parts: GuardParts;

  constructor(parts: GuardParts) {
    this.parts = parts;
  }

  /** Refuses what comes from another machine, or from a web page of another origin. */
  readonly ownPagesOnly: MiddlewareHandler = async (c, next) => {
    const why = strangerness(c);
    if (why === undefined) return next();
    this.parts.gate.refuse(c, why);
    return c.json({ error: why }, 403);
  };

  /** Requires a token or a session that has the right for the request. */
  readonly knownCallersOnly: MiddlewareHandler = async (c, next) => {
    const { caller, session } = await this.callerOf(c);
    if (session !== undefined && isWrite(c) && c.req.header("origin") === undefined) {
      this.parts.gate.refuse(c, "no Origin", { who: nameOf(caller), session });
      return c.json({ error: "a write by a session needs its Origin" }, 403);
    }
    await this.parts.gate.pass(c, next, caller, session);
  };

  /**
   * Returns who sends a request.
   * @throws WatchfireError WF_OBSERVE_TOKEN, WF_CONTROL_TOKEN, WF_CONTROL_REVIEW
   */
  async callerOf(c: Context): Promise<KnownCaller> {
    const { access, gate } = this.parts;
    if (c.req.header("authorization") !== undefined) return { caller: await gate.callerOf(c), session: undefined };
    const found = access.sessionOf(getCookie(c, cookieName(c)) ?? "", c.req.header(proofHeader) ?? "");
    if (found) return { caller: found.caller, session: found.number };
    const error = new WatchfireError("WF_OBSERVE_TOKEN", {
      what: "the request has neither a token nor a session",
      hint: "log in by the link that `watchfire console` prints, or with a token",
    });
    gate.refuse(c, error);
    throw error;
  }

  /** Returns the caller with a token: a session cannot make another one. @throws WatchfireError as `callerOf` */
  bearerOf(c: Context): Promise<ApiCaller> {
    return this.parts.gate.callerOf(c);
  }

  /** Logs that a browser has logged in. */
  loggedIn(c: Context, session: number, caller: ApiCaller): void {
    this.parts.log.info({ who: nameOf(caller), session, from: fromOf(c) }, "console login");
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
