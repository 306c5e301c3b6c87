import { z } from "zod";
import type { KubeTransport } from "./transport.ts";

/** A user as the API server's authenticators know it. */
export interface ReviewedAccount {
  readonly name: string;
  /** Empty if absent. */
  readonly uid: string;
  readonly groups: readonly string[];
  /** Facts for authorizers other than RBAC. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Time limit, in milliseconds. Somebody waits for the answer. */
const timeoutMs = 5_000;
/** Limit of an answer, in bytes. */
const answerLimit = 1024 * 1024;

const answerSchema = z.looseObject({
  status: z.looseObject({
    authenticated: z.boolean().default(false),
    audiences: z.array(z.string()).nullish(),
    user: z
      .looseObject({
        username: z.string().default(""),
        uid: z.string().default(""),
        groups: z.array(z.string()).nullish(),
        extra: z.record(z.string(), z.array(z.string())).nullish(),
      })
      .nullish(),
  }),
});

/**
 * Returns whose token it is (TokenReview, which needs `create` on `tokenreviews.authentication.k8s.io`); `undefined` for one that
 * the API server does not accept.
 * @param audience the audience that the token must be for; `undefined`: the API server's own
 */
export async function reviewToken(
  transport: KubeTransport,
  token: string,
  audience: string | undefined,
): Promise<ReviewedAccount | undefined> {
  const spec = { token, ...(audience !== undefined && { audiences: [audience] }) };
  const body = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec });
  const path = "/apis/authentication.k8s.io/v1/tokenreviews";
  const answer = await transport.json<unknown>({ method: "POST", path, body, timeoutMs }, answerLimit);
  const { authenticated, audiences, user } = answerSchema.parse(answer).status;
  if (!authenticated || !user || user.username === "") return undefined;
  // An authenticator that knows no audiences answers without them, and has not checked any.
  if (audience !== undefined && !(audiences ?? []).includes(audience)) return undefined;
  return { name: user.username, uid: user.uid, groups: user.groups ?? [], extra: user.extra ?? {} };
}
