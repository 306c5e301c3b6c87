import { defineHandler } from "@watchfire/sdk";
import { type Numbered, numberOf } from "./numbers.ts";

/** Logs each event, while the function is not a reconciler. */
export default defineHandler<Numbered>(({ type, object, redelivered, attempt }, ctx) => {
  const number = type === "Deleted" ? "gone" : numberOf(object);
  ctx.log.info("told", { name: object.metadata?.name, number, redelivered: redelivered || attempt > 1 });
});
