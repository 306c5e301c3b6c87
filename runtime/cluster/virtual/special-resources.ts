import type { Subresource } from "../rest/resource-handler.ts";
import { accessReviews } from "./access-reviews.ts";
import { identityReviews } from "./identity-reviews.ts";
import { bind, evict, finalize, resize } from "./pod-actions.ts";
import { scale } from "./scale.ts";
import type { Services } from "./services.ts";
import { tokenRequest } from "./token-request.ts";

/**
 * Handlers of resources and subresources that are not stored. Keys: `<plural>.<group>` for a resource, `<plural>/<subresource>`
 * for a subresource of one resource, `/<subresource>` for a subresource of all.
 */
export function specialResources(services: Services): Map<string, Subresource> {
  return new Map<string, Subresource>([
    ...accessReviews(services),
    ...identityReviews(services),
    ["serviceaccounts/token", tokenRequest(services)],
    ["/scale", scale],
    ["pods/eviction", evict],
    ["pods/binding", bind],
    ["pods/resize", resize],
    ["namespaces/finalize", finalize],
  ]);
}
