import { defineHandler } from "@watchfire/sdk";
import type { V1Pod } from "@watchfire/sdk/kubernetes";

/**
 * The number of events by the delay of their start after they were written, in milliseconds of this machine's clock.
 */
const delays: Record<number, number> = {};

export default defineHandler<V1Pod>((event, ctx) => {
  const annotations = event.object.metadata?.annotations ?? {};
  const delay = Math.max(0, Date.now() - Number(annotations["bench/sent"]));
  delays[delay] = (delays[delay] ?? 0) + 1;
  if (annotations["bench/last"]) ctx.log.warn("delays", { delays });
});
