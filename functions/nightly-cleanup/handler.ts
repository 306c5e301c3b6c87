import { ConflictError, defineHandler, listAll, NotFoundError, parseDuration } from "@watchfire/sdk";
import { endOf } from "./end.ts";
import type { Handler } from "./function.d.ts";

const label = "nightly-cleanup.watchfire.dev/after";

export default defineHandler(async (event, ctx) => {
  const now = Date.parse(event.scheduledFor);
  let removed = 0;
  for (const pod of await listAll(ctx.kube, { apiVersion: "v1", kind: "Pod", labelSelector: label })) {
    const { name, namespace, uid, labels } = pod.metadata;
    const after = parseDuration(labels?.[label] ?? "");
    if (after === undefined) ctx.log.warn("no duration", { pod: `${namespace}/${name}`, after: labels?.[label] });
    const end = endOf(pod);
    if (after === undefined || end === undefined || end + after > now) continue;
    try {
      // Does not delete another Pod of the same name that was created meanwhile.
      await ctx.kube.delete({ apiVersion: "v1", kind: "Pod", name, namespace }, { preconditions: { uid } });
      removed++;
    } catch (error) {
      if (!(error instanceof NotFoundError || error instanceof ConflictError)) throw error;
    }
  }
  ctx.metrics.increment("pods_removed_total", removed);
  ctx.log.info("cleaned up", { removed, scheduledFor: event.scheduledFor, missed: event.missed ?? false });
}) satisfies Handler;
