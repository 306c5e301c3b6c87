import { defineHandler, PermanentError, RetryAfter } from "@watchfire/sdk";
import type { Handler } from "./function.d.ts";

export default defineHandler(async (event, ctx) => {
  const { metadata, spec, status } = event.object;
  const isServed = event.type !== "Deleted" && spec?.type === "LoadBalancer";
  const addresses = isServed ? (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname) : [];
  const ports = isServed ? (spec.ports ?? []).map(({ port }) => port) : [];
  // The whole state, and not the difference: the same post twice does no harm.
  const service = { service: `${metadata.namespace}/${metadata.name}`, addresses, ports };
  const url = ctx.env.SERVICE_WEBHOOK_URL;
  if (!url) return ctx.log.warn("no webhook", service);
  const headers = { "content-type": "application/json", "idempotency-key": event.id };
  const { ok, status: code } = await ctx.fetch(url, { method: "POST", headers, body: JSON.stringify(service) });
  if (code === 429 || code >= 500) throw new RetryAfter("30s", `the webhook answers ${code}`);
  if (!ok) throw new PermanentError(`the webhook answers ${code}`); // `watchfire dead-letters` shows it
}) satisfies Handler;
