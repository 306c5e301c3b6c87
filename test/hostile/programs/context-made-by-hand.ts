// ends with: ok
// within: 900 ms
import type { Context } from "../../../sdk/index.ts";

/** With its context's class it could write into the outbox, header included, in the name of an event that it invents. */
export default (_event: unknown, ctx: Context) => {
  const run = { no: '1,"info",3,0],[1', over: false, calls: 0, logged: 0 };
  for (let made: object | null = ctx; made; made = Object.getPrototypeOf(made)) {
    try {
      new (made.constructor as new (run: object) => Context)(run).log.info("abc");
    } catch {
      // The object has no log.
    }
  }
};
