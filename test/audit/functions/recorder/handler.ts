import { defineHandler } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";

/** Records each delivery as a ConfigMap in the recording namespace. */
export default defineHandler<V1ConfigMap>(async (event, ctx) => {
  const { uid = "", name = "" } = event.object.metadata ?? {};
  const namespace = `${event.object.metadata?.namespace}-records`;
  const run = Math.random().toString(36).slice(2, 12);
  const id = event.id.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const record = {
    id: event.id,
    type: event.type,
    uid,
    name,
    resourceVersion: event.resourceVersion,
    attempt: String(event.attempt),
    redelivered: String(event.redelivered),
    initial: String(event.initial ?? false),
    synthetic: String(event.synthetic ?? false),
    reason: event.reason ?? "",
  };
  const metadata = { name: `${id}-${event.attempt}-${run}`, namespace };
  await ctx.kube.create({ apiVersion: "v1", kind: "ConfigMap", metadata, data: record });
  // Does some more work after the effect, so that a kill often falls between the effect and its record.
  await ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", name: metadata.name, namespace });
});
