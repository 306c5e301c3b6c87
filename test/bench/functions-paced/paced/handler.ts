import { defineHandler } from "@watchfire/sdk";
import type { V1Pod } from "@watchfire/sdk/kubernetes";

/** How many events began so many milliseconds after they were written, by this machine's clock. */
const delays: Record<number, number> = {};

export default defineHandler<V1Pod>((event, ctx) => {
  const annotations = event.object.metadata?.annotations ?? {};
  const delay = Math.max(0, Date.now() - Number(annotations["bench/sent"]));
  delays[delay] = (delays[delay] ?? 0) + 1;
  if (annotations["bench/last"]) ctx.log.warn("delays", { delays });
});
