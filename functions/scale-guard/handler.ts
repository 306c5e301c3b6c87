import { defineHandler, NotFoundError } from "@watchfire/sdk";
import type { V1Deployment } from "@watchfire/sdk/kubernetes";
import { parseRange } from "./range.ts";

const annotation = "scale-guard.watchfire.dev/range";

export default defineHandler<V1Deployment>(async (event, ctx) => {
  const deployment = event.object;
  const text = deployment.metadata?.annotations?.[annotation];
  if (text === undefined) return;

  const range = parseRange(text);
  if (!range) {
    // The owner has to fix it, which causes the next event: a retry is useless.
    await ctx.events.emit(deployment, {
      type: "Warning",
      reason: "BadRange",
      message: `annotation ${annotation} is "${text}"; write it as "2-5", or as "3" for exactly three replicas`,
    });
    return;
  }

  const ref = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    name: deployment.metadata?.name ?? "",
    namespace: deployment.metadata?.namespace,
  };
  try {
    // Read now instead of from the event: the object may have been scaled again since.
    const scale = await ctx.kube.getScale(ref);
    const found = scale.spec?.replicas ?? 0;
    const wanted = Math.min(Math.max(found, range.min), range.max);
    if (wanted === found) return;

    await ctx.kube.setScale(ref, wanted);
    ctx.log.info("scaled back into range", { found, wanted, range: text });
    await ctx.events.emit(deployment, {
      type: "Normal",
      reason: "ScaledIntoRange",
      message: `scaled from ${found} to ${wanted} replicas: ${annotation} is "${text}"`,
    });
  } catch (error) {
    if (error instanceof NotFoundError) return; // deleted meanwhile
    throw error;
  }
});
