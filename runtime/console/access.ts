import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { type ApiCaller, nameOf } from "../control/access/caller.ts";

/** How long a one-time code can be used, in milliseconds. */
export const codeMs = 10 * 60_000;
/** How long a session lasts at most, in milliseconds. */
const sessionMs = 12 * 3_600_000;
/** How long a session of an account lasts whose token does not say when it ends, in milliseconds. */
const unknownEndMs = 3_600_000;
/** Most codes and sessions at a time. One more replaces the oldest of the caller who has most. */
const mostCodes = 16;
const mostSessions = 32;

/** A browser that has logged in. */
interface ConsoleSession {
  /** Counts from 1: names the session in the audit log. */
  readonly number: number;
  /** The caller who logged in. The session may do what they may, and its rights are reviewed as theirs. */
  readonly caller: ApiCaller;
}

interface KeptSession extends ConsoleSession {
  readonly proof: string;
  /** On the monotonic clock. */
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
 * Knows which browsers have logged in, and as whom. A code is made by a caller with a token, and can be exchanged for a session
 * once. It stores only hashes of codes, cookies and proofs, and no tokens. A restart forgets all of them.
 */
export class ConsoleAccess {
  private readonly clock: Pick<Clock, "monotonic" | "now">;
  private readonly secret: () => string;
  /** When each code ends, and whose session it begins, by its hash. */
  private readonly codes = new Map<string, { readonly until: number; readonly caller: ApiCaller }>();
  /** By the hash of its cookie. */
  private readonly sessions = new Map<string, KeptSession>();
  private number = 0;

  /** @param secret returns 32 random bytes as text */
  constructor(
    clock: Pick<Clock, "monotonic" | "now">,
    secret: () => string = () => randomBytes(32).toString("base64url"),
  ) {
    this.clock = clock;
    this.secret = secret;
  }

  /** Returns a code for one login of a caller within `codeMs`. */
  newCode(caller: ApiCaller): string {
    const code = this.secret();
    makeRoom(this.codes, mostCodes, caller);
    this.codes.set(hashed(code), { until: this.clock.monotonic() + codeMs, caller });
    return code;
  }

  /** Exchanges a code for a session. Returns `undefined` for a code that is unknown, used or too old. */
  login(code: string): SessionKeys | undefined {
    const hash = hashed(code);
    const made = this.codes.get(hash);
    this.codes.delete(hash);
    return made === undefined || made.until < this.clock.monotonic() ? undefined : this.begin(made.caller);
  }

  /** Begins a session of a caller. It ends with their token. */
  begin(caller: ApiCaller): SessionKeys {
    const keys = { cookie: this.secret(), proof: this.secret(), number: ++this.number };
    makeRoom(this.sessions, mostSessions, caller);
    const until = this.clock.monotonic() + this.lifeOf(caller);
    this.sessions.set(hashed(keys.cookie), { number: keys.number, caller, proof: hashed(keys.proof), until });
    return keys;
  }

  private lifeOf(caller: ApiCaller): number {
    if (caller.kind === "token") return sessionMs;
    if (caller.until === undefined) return unknownEndMs;
    return Math.min(sessionMs, Math.max(0, caller.until - this.clock.now()));
  }

  /** Returns the session that both halves belong to. Looking up hashes reveals nothing by its duration. */
  sessionOf(cookie: string, proof: string): ConsoleSession | undefined {
    const session = this.sessions.get(hashed(cookie));
    if (!session || session.until < this.clock.monotonic() || session.proof !== hashed(proof)) return undefined;
    return session;
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

/** Removes one entry of a full map: the oldest of the caller who has most, who is the new one if several have as many. */
function makeRoom(of: Map<string, { readonly caller: ApiCaller }>, most: number, next: ApiCaller): void {
  if (of.size < most) return;
  const counts = new Map([[nameOf(next), 1]]);
  for (const { caller } of of.values()) counts.set(nameOf(caller), (counts.get(nameOf(caller)) ?? 0) + 1);
  const [greediest] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
  for (const [key, { caller }] of of) if (nameOf(caller) === greediest) return void of.delete(key);
}
