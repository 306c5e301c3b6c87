import { defineHandler } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";

/** Says each delivery in the log, and asks no API server anything: that would be most of what a change costs. */
export default defineHandler<V1ConfigMap>((event, ctx) => {
  const { uid = "", name = "" } = event.object.metadata ?? {};
  const { id, type, resourceVersion, redelivered, synthetic = false, reason = "" } = event;
  ctx.log.info("told", { id, uid, name, type, resourceVersion, redelivered, synthetic, reason });
});
