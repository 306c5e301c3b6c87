import type { Delivery, Outcome, Runner } from "../../runtime/engine/delivery/delivery.ts";

/** Begins each delivery at once, and ends it as `handle` says. It has nothing to give back. */
export const promisedRunner = (handle: (delivery: Delivery) => Outcome | Promise<Outcome>): Runner => ({
  recall() {},
  give(delivery, listener) {
    listener.begins();
    void Promise.resolve(handle(delivery)).then((outcome) => listener.ended(outcome));
  },
});
