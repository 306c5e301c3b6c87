import type { Authenticator } from "../auth/authenticator.ts";
import type { Authorizer } from "../auth/authorizer.ts";
import type { ServiceAccountTokens } from "../auth/service-account-tokens.ts";
import type { Clock } from "../clock.ts";

/** Services that the handlers of virtual resources use. */
export interface Services {
  authenticator: Authenticator;
  authorizer: Authorizer;
  tokens: ServiceAccountTokens;
  clock: Clock;
}
