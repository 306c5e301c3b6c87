import { defineHandler, listAll } from "@watchfire/sdk";
import type { Handler } from "./function.d.ts";
import { fullName } from "./image-name.ts";

/** More would not fit into a ConfigMap. */
const mostLines = 2_000;

export default defineHandler(async (event, ctx) => {
  const allowed = (ctx.env.ALLOWED ?? "").split(/\s+/).filter((prefix) => prefix !== "");
  const lines = new Set<string>();
  for (const { metadata, spec } of await listAll(ctx.kube, { apiVersion: "v1", kind: "Pod" })) {
    for (const { image = "" } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
      const name = fullName(image);
      if (allowed.some((prefix) => name.startsWith(prefix))) continue;
      lines.add(`${metadata.namespace}/${metadata.name}: ${name}`);
    }
  }
  const shown = [...lines].sort().slice(0, mostLines);
  const data = { found: String(lines.size), at: event.scheduledFor, pods: shown.join("\n") };
  const metadata = { name: "image-report", namespace: "default" };
  await ctx.kube.apply({ apiVersion: "v1", kind: "ConfigMap", metadata, data }, { force: true });
  ctx.log.info("reported", { found: lines.size });
}) satisfies Handler;
