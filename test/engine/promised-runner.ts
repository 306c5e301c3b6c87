import type { Delivery, Outcome, Runner } from "../../runtime/engine/delivery/delivery.ts";

/** Starts each delivery at once, and ends it with the result of `handle`. It never returns deliveries. */
export const promisedRunner = (handle: (delivery: Delivery) => Outcome | Promise<Outcome>): Runner => ({
  recall() {},
  give(delivery, listener) {
    listener.begins();
    void Promise.resolve(handle(delivery)).then((outcome) => listener.ended(outcome));
  },
});
