import { defineHandler } from "@watchfire/sdk";
import type { V1ResourceQuota } from "@watchfire/sdk/kubernetes";
import { amountOf } from "./amount.ts";
import type { Handler } from "./function.d.ts";

/** The share of a quota from which it warns. */
const threshold = 0.9;

/** Each resource of which so much is used, with its share. */
function nearlyUsed({ status }: Pick<V1ResourceQuota, "status">): Map<string, number> {
  const shares = Object.entries(status?.hard ?? {}).map(([resource, hard]) => {
    return [resource, amountOf(status?.used?.[resource]) / amountOf(hard)] as const;
  });
  return new Map(shares.filter(([, share]) => share >= threshold));
}

export default defineHandler(async ({ object, oldObject }, ctx) => {
  const before = nearlyUsed(oldObject ?? {});
  for (const [resource, share] of nearlyUsed(object)) {
    if (before.has(resource)) continue; // it was said when it rose above the threshold
    const { used, hard } = object.status ?? {};
    const message = `${resource}: ${used?.[resource]} of ${hard?.[resource]} used, ${Math.floor(100 * share)} %`;
    await ctx.events.emit(object, { type: "Warning", reason: "QuotaNearlyUsed", message });
    ctx.metrics.increment("quota_warnings_total", 1, { namespace: object.metadata.namespace ?? "" });
  }
}) satisfies Handler;
