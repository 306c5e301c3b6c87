import { ConflictError, defineReconciler, NotFoundError, parseDuration, requeueAfter } from "@watchfire/sdk";
import type { Reconciler } from "./function.d.ts";

const kind = { apiVersion: "v1", kind: "ConfigMap" } as const;
const annotation = "ttl.watchfire.dev/after";
const minute = 60_000;

export default defineReconciler(async ({ key, object }, ctx) => {
  const { uid, creationTimestamp = "", deletionTimestamp, annotations } = object?.metadata ?? {};
  const text = annotations?.[annotation];
  if (!object || deletionTimestamp || text === undefined) return;
  const ttl = parseDuration(text);
  if (ttl === undefined) {
    // Correcting it is a change, and runs this again.
    const message = `annotation ${annotation} is "${text}"; write a duration, such as 90m or 24h`;
    return ctx.events.emit(object, { type: "Warning", reason: "BadTTL", message });
  }
  const left = Date.parse(creationTimestamp) + ttl - Date.now();
  // Looks again once a day at least, and survives a restart of the runtime.
  if (left > 0) return requeueAfter(Math.min(Math.ceil(left / minute), 24 * 60) * minute);
  try {
    await ctx.kube.delete({ ...kind, ...key }, { preconditions: { uid } });
    ctx.log.info("deleted", { ...key, after: text });
  } catch (error) {
    // Deleted meanwhile, or another object of that name by now.
    if (!(error instanceof NotFoundError || error instanceof ConflictError)) throw error;
  }
}) satisfies Reconciler;
