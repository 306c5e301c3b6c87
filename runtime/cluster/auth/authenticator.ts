import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { unauthorized } from "../api/status.ts";
import { impersonated } from "./impersonation.ts";
import { issuer, type ServiceAccountTokens } from "./service-account-tokens.ts";
import { admin, anonymous, type User } from "./user.ts";

/** Identifies the user of a request by its bearer token. */
export class Authenticator {
  private readonly adminToken: Buffer;
  private readonly tokens: ServiceAccountTokens;
  private readonly mayImpersonate: (user: User, as: User) => void;

  /** `mayImpersonate` throws a 403 if the user may not impersonate the other. */
  constructor(adminToken: string, tokens: ServiceAccountTokens, mayImpersonate: (user: User, as: User) => void) {
    this.adminToken = Buffer.from(adminToken);
    this.tokens = tokens;
    this.mayImpersonate = mayImpersonate;
  }

  /** Throws a 401 for a credential that is not valid, a 403 for an impersonation that is not allowed. */
  authenticate(request: IncomingMessage): User {
    const user = this.userOf(request);
    const as = impersonated(request.headers);
    if (!as) return user;
    this.mayImpersonate(user, as);
    return as;
  }

  private userOf(request: IncomingMessage): User {
    const header = request.headers.authorization;
    if (header === undefined) return anonymous;
    const token = /^Bearer\s+(\S+)\s*$/i.exec(header)?.[1];
    if (token === undefined) throw unauthorized();
    const user = this.ofToken(token);
    if (!user || this.tokens.verify(token)?.audiences.includes(issuer) === false) throw unauthorized();
    return user;
  }

  /** Returns the holder of a token, for any audience; `undefined` if the token is not valid. */
  ofToken(token: string): User | undefined {
    const bytes = Buffer.from(token);
    if (bytes.length === this.adminToken.length && timingSafeEqual(bytes, this.adminToken)) return admin;
    return this.tokens.verify(token)?.user;
  }
}
