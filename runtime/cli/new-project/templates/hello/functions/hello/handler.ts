import { defineHandler } from "@watchfire/sdk";
import type { Handler } from "./function.d.ts";

const greetings = { Added: "hello", Modified: "hello again", Deleted: "goodbye" };

export default defineHandler((event, ctx) => {
  const { namespace, name } = event.object.metadata;
  ctx.log.info(greetings[event.type], {
    configMap: `${namespace}/${name}`,
    keys: Object.keys(event.object.data ?? {}),
  });
}) satisfies Handler;
