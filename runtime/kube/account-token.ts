import { z } from "zod";
import type { Clock, Random } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { ApiError } from "./api-error.ts";
import { resourcePath } from "./resource.ts";
import type { KubeTransport, TokenSource } from "./transport.ts";

/** Shortest token life that an API server accepts (`pkg/apis/authentication/validation`, MinTokenAgeSec), in seconds. */
const lifeSeconds = 600;
/**
 * Share of a token's life after which it is renewed: the kubelet's (`pkg/kubelet/token/token_manager.go`), up to a tenth of the
 * life earlier, so that many tokens are not renewed together.
 */
const renewAt = 0.8;
const jitter = 0.1;
/**
 * Delay before a failed renewal is retried, and the shortest time between two replacements of refused tokens, in milliseconds.
 */
const retryMs = 5_000;
/** Limit of an answer, in bytes. A token has a kilobyte or two. */
const answerLimit = 64 * 1024;

const tokenSchema = z.looseObject({
  spec: z.looseObject({ expirationSeconds: z.number().positive() }),
  status: z.looseObject({ token: z.string().min(1) }),
});

interface AccountTokenParts {
  /** Connection that creates the token: the runtime's own. */
  readonly transport: KubeTransport;
  readonly namespace: string;
  /** Name of the ServiceAccount. */
  readonly account: string;
  readonly clock: Clock;
  readonly random: Random;
}

interface KeptToken {
  readonly token: string;
  /** Start of the token's life, on the monotonic clock. */
  readonly since: number;
  readonly renewFrom: number;
  readonly until: number;
}

/**
 * The short-lived token of one ServiceAccount, obtained by TokenRequest for the API server's own audience. The first request
 * after 80 % of its life renews it, while the old one stays in use. It is also renewed when the server refuses it. At most one
 * TokenRequest runs at a time. The token is kept in memory only.
 */
export class AccountToken implements TokenSource {
  private readonly parts: AccountTokenParts;
  private kept: KeptToken | undefined;
  private asking: Promise<KeptToken> | undefined;
  private failedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: AccountTokenParts) {
    this.parts = parts;
  }

  /**
   * @throws WatchfireError WF_KUBE_FORBIDDEN if the account does not exist or the runtime may not act as it; WF_KUBE_UNREACHABLE
   */
  async token(): Promise<string> {
    const { kept } = this;
    const now = this.parts.clock.monotonic();
    if (!kept || now >= kept.until) return (await this.ask()).token;
    // The token is valid for another two minutes, so nobody waits for its successor.
    if (now >= kept.renewFrom && now - this.failedAt >= retryMs) this.ask().catch(() => undefined);
    return kept.token;
  }

  refused(): void {
    if (this.kept && this.parts.clock.monotonic() - this.kept.since >= retryMs) this.kept = undefined;
  }

  private ask(): Promise<KeptToken> {
    this.asking ??= this.request().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  private async request(): Promise<KeptToken> {
    const { transport, namespace, account, clock, random } = this.parts;
    const since = clock.monotonic();
    try {
      const collection = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };
      const path = resourcePath(collection, namespace, account, "token");
      const spec = { expirationSeconds: lifeSeconds };
      const body = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec });
      const answer = tokenSchema.parse(await transport.json<unknown>({ method: "POST", path, body }, answerLimit));
      const lifeMs = answer.spec.expirationSeconds * 1000;
      const renewFrom = since + lifeMs * (renewAt - random() * jitter);
      this.kept = { token: answer.status.token, since, renewFrom, until: since + lifeMs };
      return this.kept;
    } catch (error) {
      this.failedAt = clock.monotonic();
      throw this.fault(error);
    }
  }

  private fault(error: unknown): unknown {
    const { namespace, account } = this.parts;
    if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 404)) return error;
    const missing = {
      what: `there is no ServiceAccount ${account} in namespace ${namespace}`,
      hint: "deploy the function again, or apply what `watchfire rbac` prints: either creates the account",
    };
    const what = `create serviceaccounts/token ${JSON.stringify(account)} in namespace ${JSON.stringify(namespace)} is refused: ${error.message}`;
    return new WatchfireError("WF_KUBE_FORBIDDEN", { ...(error.status === 404 ? missing : { what }), cause: error });
  }
}
