import { defineHandler, NotFoundError } from "@watchfire/sdk";
import type { Handler } from "./function.d.ts";

const target = "team-b";

export default defineHandler(async (event, ctx) => {
  const { metadata, data = {} } = event.object;
  const copy = { apiVersion: "v1", kind: "ConfigMap", name: metadata.name, namespace: target } as const;
  if (event.type === "Deleted") {
    await ctx.kube.delete(copy).catch((error: unknown) => {
      if (!(error instanceof NotFoundError)) throw error;
    });
    ctx.log.info("copy removed", { name: metadata.name });
    return;
  }
  await ctx.kube.apply({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: metadata.name, namespace: target },
    data,
  });
  ctx.log.info("copied", { name: metadata.name, into: target });
}) satisfies Handler;
