import { defineHandler } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";

const greetings = { Added: "hello", Modified: "hello again", Deleted: "goodbye" };

export default defineHandler<V1ConfigMap>((event, ctx) => {
  const { namespace, name } = event.object.metadata;
  ctx.log.info(greetings[event.type], {
    configMap: `${namespace}/${name}`,
    keys: Object.keys(event.object.data ?? {}),
  });
});
