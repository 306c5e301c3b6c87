import { z } from "zod";
import type { Clock, Random } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { ApiError } from "./api-error.ts";
import { resourcePath } from "./resource.ts";
import type { KubeTransport, TokenSource } from "./transport.ts";

/** The shortest life that an API server gives (`pkg/apis/authentication/validation`, MinTokenAgeSec), in seconds. */
const lifeSeconds = 600;
/** The kubelet's share (`pkg/kubelet/token/token_manager.go`); up to a tenth of the life earlier, so that many do not renew together. */
const renewAt = 0.8;
const jitter = 0.1;
/** A renewal that failed is tried again after this; a token that is refused is not replaced more often. Milliseconds. */
const retryMs = 5_000;
/** A token is a kilobyte or two. */
const answerLimit = 64 * 1024;

const tokenSchema = z.looseObject({
  spec: z.looseObject({ expirationSeconds: z.number().positive() }),
  status: z.looseObject({ token: z.string().min(1) }),
});

interface AccountTokenParts {
  /** Whoever may make the token: the runtime's own connection. */
  readonly transport: KubeTransport;
  readonly namespace: string;
  /** The ServiceAccount's name. */
  readonly account: string;
  readonly clock: Clock;
  readonly random: Random;
}

interface KeptToken {
  readonly token: string;
  /** On the monotonic clock. */
  readonly since: number;
  readonly renewFrom: number;
  readonly until: number;
}

/**
 * The short-lived token of one ServiceAccount, by TokenRequest, for the API server's own audience. The next request
 * after 80 % of its life renews it, while the old one is still in use. It is renewed once more where the server refuses
 * it. One request at a time. It lives in memory alone.
 */
export class AccountToken implements TokenSource {
  private readonly parts: AccountTokenParts;
  private kept: KeptToken | undefined;
  private asking: Promise<KeptToken> | undefined;
  private failedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: AccountTokenParts) {
    this.parts = parts;
  }

  /** @throws WatchfireError WF_KUBE_FORBIDDEN where there is no such account or no right to act as it; WF_KUBE_UNREACHABLE */
  async token(): Promise<string> {
    const { kept } = this;
    const now = this.parts.clock.monotonic();
    if (!kept || now >= kept.until) return (await this.ask()).token;
    // It is good for another two minutes: nobody waits for its successor.
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
    const what =
      error.status === 404
        ? `there is no ServiceAccount ${account} in namespace ${namespace}`
        : `create serviceaccounts/token ${JSON.stringify(account)} in namespace ${JSON.stringify(namespace)} is refused: ${error.message}`;
    return new WatchfireError("WF_KUBE_FORBIDDEN", { what, cause: error });
  }
}
