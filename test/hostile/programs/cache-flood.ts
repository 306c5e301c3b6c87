// ends with: WF_SANDBOX_CPU_BUDGET WF_SANDBOX_DEADLINE
// within: 3100 ms
import type { Context } from "../../../sdk/index.ts";

export default (_event: unknown, ctx: Context) => {
  for (;;) ctx.cache.list({ apiVersion: "v1", kind: "Pod" });
};
