import { at, timestamp } from "../api/object.ts";
import { issuer } from "../auth/service-account-tokens.ts";
import type { User } from "../auth/user.ts";
import type { Subresource } from "../rest/resource-handler.ts";
import { review } from "./access-reviews.ts";
import type { Services } from "./services.ts";

const group = "authentication.k8s.io";

/** The reviews of authentication.k8s.io, which identify the client or the holder of a token. */
export function identityReviews({ authenticator, tokens, clock }: Services): [string, Subresource][] {
  const selfReview: Subresource = async (call, verb, body) => {
    const answer = await review((own) => ({ userInfo: userInfo(own.user) }))(call, verb, body);
    const value = answer.value as { metadata: object };
    return { ...answer, value: { ...value, metadata: { creationTimestamp: timestamp(clock.now()) } } };
  };
  const tokenReview = review((_call, object) => {
    const token = String(at(object, "spec.token") ?? "");
    const asked = at(object, "spec.audiences");
    const wanted = Array.isArray(asked) && asked.length > 0 ? asked.map(String) : [issuer];
    const user = authenticator.ofToken(token);
    const audiences = (tokens.verify(token)?.audiences ?? [issuer]).filter((one) => wanted.includes(one));
    if (!user || audiences.length === 0) return { user: {}, error: "invalid bearer token" };
    return { authenticated: true, user: userInfo(user), audiences };
  });
  return [
    [`selfsubjectreviews.${group}`, selfReview],
    [`tokenreviews.${group}`, tokenReview],
  ];
}

function userInfo({ name, uid, groups, extra }: User) {
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  };
}
