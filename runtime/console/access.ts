import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.ts";

/** How long a one-time code can be used, in milliseconds. */
export const codeMs = 10 * 60_000;
/** How long a session lasts, in milliseconds. */
const sessionMs = 12 * 3_600_000;
/** Most codes and sessions at a time. One more replaces the oldest. */
const mostCodes = 16;
const mostSessions = 32;

/** A browser that has logged in. */
interface ConsoleSession {
  /** Counts from 1: names the session in the audit log. */
  readonly number: number;
  readonly proof: string;
  readonly until: number;
}

/** The two halves of a session. Both are needed for each request. */
interface SessionKeys {
  /** For the cookie, which scripts cannot read. */
  readonly cookie: string;
  /** For the page, which sends it in a header: only pages of the same origin can. */
  readonly proof: string;
  readonly number: number;
}

/**
 * Knows which browsers have logged in. A code is made by whoever has the data folder's token, and can be exchanged for a session
 * once. It stores only hashes of codes, cookies and proofs. A restart forgets all of them.
 */
export class ConsoleAccess {
  private readonly clock: Pick<Clock, "monotonic">;
  private readonly secret: () => string;
  /** When each code ends, by its hash. */
  private readonly codes = new Map<string, number>();
  /** By the hash of its cookie. */
  private readonly sessions = new Map<string, ConsoleSession>();
  private number = 0;

  /** @param secret returns 32 random bytes as text */
  constructor(clock: Pick<Clock, "monotonic">, secret: () => string = () => randomBytes(32).toString("base64url")) {
    this.clock = clock;
    this.secret = secret;
  }

  /** Returns a code for one login within `codeMs`. */
  newCode(): string {
    const code = this.secret();
    makeRoom(this.codes, mostCodes);
    this.codes.set(hashed(code), this.clock.monotonic() + codeMs);
    return code;
  }

  /** Exchanges a code for a session. Returns `undefined` for a code that is unknown, used or too old. */
  login(code: string): SessionKeys | undefined {
    const hash = hashed(code);
    const until = this.codes.get(hash);
    this.codes.delete(hash);
    const now = this.clock.monotonic();
    if (until === undefined || until < now) return undefined;
    const keys = { cookie: this.secret(), proof: this.secret(), number: ++this.number };
    makeRoom(this.sessions, mostSessions);
    this.sessions.set(hashed(keys.cookie), { number: keys.number, proof: hashed(keys.proof), until: now + sessionMs });
    return keys;
  }

  /** Returns the number of the session that both halves belong to. Looking up hashes reveals nothing by its duration. */
  sessionOf(cookie: string, proof: string): number | undefined {
    const session = this.sessions.get(hashed(cookie));
    if (!session || session.until < this.clock.monotonic() || session.proof !== hashed(proof)) return undefined;
    return session.number;
  }

  /** Ends a session. */
  logout(cookie: string): void {
    this.sessions.delete(hashed(cookie));
  }
}

const hashed = (text: string): string => createHash("sha256").update(text).digest("base64url");

/** The link that logs a browser in. The code is its fragment, which no browser sends to a server. */
export const loginLink = (url: string, code: string): string => `${new URL("login", `${ownUrl(url)}/`)}#${code}`;

/** A wildcard address is replaced by loopback. */
const ownUrl = (url: string): string => url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, "//127.0.0.1").replace(/\/$/, "");

/** Removes the oldest entry of a full map. */
function makeRoom(of: Map<string, unknown>, most: number): void {
  const [oldest] = of.keys();
  if (of.size >= most && oldest !== undefined) of.delete(oldest);
}
