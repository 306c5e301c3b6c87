import { defineHandler, listAll, NotFoundError } from "@watchfire/sdk";
import type { Handler } from "./function.d.ts";

export default defineHandler(async (event, ctx) => {
  const { name, namespace, resourceVersion } = event.object.metadata;
  if (name.length > 63) return; // no label can hold it
  const kind = { apiVersion: "apps/v1", kind: "Deployment", namespace } as const;
  const users = await listAll(ctx.kube, { ...kind, labelSelector: `restart.watchfire.dev/on=${name}` });
  for (const { metadata } of users) {
    // The same change always writes the same value, so a repeated attempt restarts nothing twice.
    const annotations = { [`restart.watchfire.dev/${name}`]: resourceVersion };
    const patch = { spec: { template: { metadata: { annotations } } } };
    await ctx.kube.patch({ ...kind, name: metadata.name }, patch).catch((error: unknown) => {
      if (!(error instanceof NotFoundError)) throw error; // it was deleted meanwhile
    });
    ctx.log.info("restarted", { deployment: `${namespace}/${metadata.name}`, because: name });
  }
}) satisfies Handler;
