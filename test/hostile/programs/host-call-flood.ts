// ends with: WF_SANDBOX_OUTPUT WF_SANDBOX_CPU_BUDGET
// within: 1000 ms
import type { Context } from "../../../sdk/index.ts";

export default async (_event: unknown, ctx: Context) => {
  for (;;) ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "a" }).catch(() => {});
};
