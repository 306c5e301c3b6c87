// ends with: WF_SANDBOX_CPU_BUDGET
// within: 1500 ms
import type { Context } from "../../../sdk/index.ts";

export default (_event: unknown, ctx: Context) => {
  for (let turn = 0; ; turn++) ctx.metrics.increment(`metric_${turn}`, 1, { turn: String(turn) });
};
