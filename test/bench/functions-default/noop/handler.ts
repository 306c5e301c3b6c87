import { defineHandler } from "@watchfire/sdk";
import type { V1Pod } from "@watchfire/sdk/kubernetes";

/** Reads metadata, as most handlers begin. */
export default defineHandler<V1Pod>((event) => {
  if (!event.object.metadata?.name) throw new Error("a Pod without a name");
});
