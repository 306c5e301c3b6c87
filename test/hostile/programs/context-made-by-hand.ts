// ends with: ok
// within: 900 ms
import type { Context } from "../../../sdk/index.ts";

/** Had it the class of its context, it could write into the outbox as an event that it invents, and into its head. */
export default (_event: unknown, ctx: Context) => {
  const run = { no: '1,"info",3,0],[1', over: false, calls: 0, logged: 0 };
  for (let made: object | null = ctx; made; made = Object.getPrototypeOf(made)) {
    try {
      new (made.constructor as new (run: object) => Context)(run).log.info("abc");
    } catch {
      // It has no log.
    }
  }
};
