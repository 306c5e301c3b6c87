// ends with: WF_SANDBOX_CPU_BUDGET
// within: 900 ms
import type { Context } from "../../../sdk/index.ts";

export default (_event: unknown, ctx: Context) =>
  ctx.log.info("x", {
    toJSON: () => {
      for (;;) Math.sqrt(2);
    },
  });
