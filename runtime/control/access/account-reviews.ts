import { createHash } from "node:crypto";
import { z } from "zod";
import { placeOfFunction } from "../../access/account.ts";
import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import { clean } from "../../base/wording.ts";
import { isAllowed } from "../../kube/access-review.ts";
import { ApiError } from "../../kube/api-error.ts";
import { dnsLabel } from "../../kube/names.ts";
import { type ReviewedAccount, reviewToken } from "../../kube/token-review.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { AnswerCache } from "./answer-cache.ts";
import { type ApiCaller, nameOf } from "./caller.ts";
import type { AskedOperation } from "./operation.ts";

/** How long an answer counts, in milliseconds. A revoked token or right works that much longer. */
const keptMs = 60_000;
/** Most tokens and most answers about rights that are kept. */
const mostTokens = 512;
const mostAnswers = 2_048;
/** Reviews a second, and at once, of tokens that are not known; and of callers that are: a program may try tokens. */
const reviewsPerSecond = 20;
const reviewBurst = 50;
/** Longest token, and longest name of a function, in characters. */
const tokenLimit = 16 * 1024;
const nameLimit = 253;

interface AccountReviewsParts {
  /** The runtime's own connection. */
  readonly transport: KubeTransport;
  /** The runtime's namespace and the name of its account. */
  readonly namespace: string;
  readonly account: string;
  readonly clock: Clock;
}

/** The audience of tokens that are for one runtime alone. */
export const audienceOfRuntime = (namespace: string, account: string): string =>
  `watchfire.dev/${namespace}/${account}`;

/** Knows accounts of the cluster by their tokens, and what they may do: the API server decides both. */
export class AccountReviews {
  private readonly parts: AccountReviewsParts;
  private readonly strangers: TokenBucket;
  private readonly known: TokenBucket;
  private readonly accounts: AnswerCache<ReviewedAccount | undefined>;
  private readonly rights: AnswerCache<boolean>;

  constructor(parts: AccountReviewsParts) {
    const { clock } = parts;
    this.parts = parts;
    this.strangers = new TokenBucket(clock, reviewBurst, reviewsPerSecond);
    this.known = new TokenBucket(clock, reviewBurst, reviewsPerSecond);
    this.accounts = new AnswerCache(clock, mostTokens, keptMs, (account) => account !== undefined);
    this.rights = new AnswerCache(clock, mostAnswers, keptMs, (isAllowed) => isAllowed);
  }

  /**
   * Returns whose token it is.
   * @throws WatchfireError WF_CONTROL_TOKEN if the API server does not accept it, WF_CONTROL_REVIEW if it cannot be asked
   */
  async callerOf(token: string): Promise<ApiCaller> {
    const { transport, namespace, account: own } = this.parts;
    const { audiences, until } = claimsOf(token);
    const audience = audienceOfRuntime(namespace, own);
    const asked = audiences.includes(audience) ? audience : undefined;
    const key = hashOf(token);
    const bucket = this.accounts.wasGood(key) ? this.known : this.strangers;
    const account =
      token.length > tokenLimit
        ? undefined
        : await this.accounts.get(key, () =>
            this.review("tokenreviews.authentication.k8s.io", bucket, () => reviewToken(transport, token, asked)),
          );
    if (account && (until === undefined || until > this.parts.clock.now())) return { kind: "account", account, until };
    throw new WatchfireError("WF_CONTROL_TOKEN", {
      what: "the API server does not accept the token of the request: it has ended, is not one of this cluster, or is for another audience",
    });
  }

  /**
   * Whether a caller has a right on functions of the runtime's namespace: on one, or on all. For a function of another namespace's
   * set, the right on the function in that namespace suffices.
   */
  async may(caller: ApiCaller, right: AskedOperation["right"], name: string | undefined): Promise<boolean> {
    if (caller.kind === "token") return true;
    if (name !== undefined && name.length > nameLimit) return false;
    if (await this.mayIn(this.parts.namespace, caller, right, name)) return true;
    const place = name === undefined ? undefined : placeOfFunction(name);
    if (place?.namespace === undefined || !dnsLabel.test(place.namespace)) return false;
    return this.mayIn(place.namespace, caller, right, place.name);
  }

  private mayIn(
    namespace: string,
    { account }: Extract<ApiCaller, { kind: "account" }>,
    right: AskedOperation["right"],
    name: string | undefined,
  ): Promise<boolean> {
    const { transport } = this.parts;
    const { name: user, uid, groups, extra } = account;
    const access = { group: "watchfire.dev", resource: "functions", verb: right, name, namespace };
    const key = hashOf(JSON.stringify([account, right, namespace, name ?? null]));
    return this.rights.get(key, () =>
      this.review("subjectaccessreviews.authorization.k8s.io", this.known, () =>
        isAllowed(transport, access, { user, uid, groups, extra }),
      ),
    );
  }

  /** Returns the error for a right that is missing. @param needing what needs it, such as `pause` */
  refusal(
    caller: ApiCaller,
    right: AskedOperation["right"],
    name: string | undefined,
    needing: string,
  ): WatchfireError {
    const { namespace } = this.parts;
    const named = name === undefined ? "" : ` ${JSON.stringify(clean(name).slice(0, nameLimit))}`;
    const role = right === "update" ? "operator" : "reader";
    return new WatchfireError("WF_CONTROL_FORBIDDEN", {
      what: `${nameOf(caller)} may not ${right} functions.watchfire.dev${named} in namespace ${JSON.stringify(namespace)}, which ${needing} needs`,
      hint: `ask whoever administers the namespace to apply what \`watchfire rbac --role ${role} --namespace ${namespace}\` prints, and to bind it to you; it counts within a minute`,
    });
  }

  private async review<T>(resource: string, bucket: TokenBucket, ask: () => Promise<T>): Promise<T> {
    if (!bucket.take()) throw unreviewed(resource, "too many callers are reviewed at present");
    try {
      return await ask();
    } catch (cause) {
      const why =
        cause instanceof ApiError && cause.status === 403
          ? `the runtime may not create them: ${cause.message}`
          : cause instanceof Error
            ? cause.message
            : String(cause);
      throw unreviewed(resource, clean(why), cause);
    }
  }
}

const unreviewed = (resource: string, why: string, cause?: unknown): WatchfireError =>
  new WatchfireError("WF_CONTROL_REVIEW", { what: `the API server was not asked by ${resource}: ${why}`, cause });

const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64url");

const claimsSchema = z.looseObject({
  aud: z.union([z.string(), z.array(z.string())]).optional(),
  exp: z.number().optional(),
});

/** Reads what a JSON Web Token says of itself, unverified. `until`: epoch milliseconds. Any other token says nothing. */
function claimsOf(token: string): { readonly audiences: readonly string[]; readonly until: number | undefined } {
  try {
    const text = Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8");
    const { aud = [], exp } = claimsSchema.parse(JSON.parse(text));
    return { audiences: [aud].flat(), until: exp === undefined ? undefined : exp * 1000 };
  } catch {
    return { audiences: [], until: undefined };
  }
}
