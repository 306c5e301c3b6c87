import { defineHandler } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";

/** Logs each delivery. It sends no request to an API server, because that would dominate the cost of a change. */
export default defineHandler<V1ConfigMap>((event, ctx) => {
  const { uid = "", name = "" } = event.object.metadata ?? {};
  const { id, type, resourceVersion, redelivered, synthetic = false, reason = "" } = event;
  ctx.log.info("told", { id, uid, name, type, resourceVersion, redelivered, synthetic, reason });
});
