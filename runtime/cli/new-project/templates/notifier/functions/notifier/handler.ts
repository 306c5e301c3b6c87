import { defineHandler } from "@watchfire/sdk";
import type { Handler } from "./function.d.ts";

export default defineHandler(async (event, ctx) => {
  const { involvedObject, reason, message } = event.object;
  const { kind, namespace, name } = involvedObject;
  const text = `${reason}: ${kind} ${namespace}/${name}: ${message}`;
  const url = ctx.env.NOTIFIER_URL;
  if (!url) return ctx.log.warn(text);
  const headers = { "content-type": "application/json" };
  const response = await ctx.fetch(url, { method: "POST", headers, body: JSON.stringify({ text }) });
  // Thrown, so that it is tried again, with backoff.
  if (!response.ok) throw new Error(`the webhook answers ${response.status}`);
}) satisfies Handler;
