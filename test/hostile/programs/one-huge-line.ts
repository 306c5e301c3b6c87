// ends with: ok
// within: 1500 ms
import type { Context } from "../../../sdk/index.ts";

export default (_event: unknown, ctx: Context) => ctx.log.info("x".repeat(5e6));
