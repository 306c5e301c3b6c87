// ends with: WF_SANDBOX_CPU_BUDGET
// within: 900 ms
import type { Context } from "../../../sdk/index.ts";

export default async (_event: unknown, ctx: Context) => {
  await ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "a" });
  while (true) Math.sqrt(2);
};
