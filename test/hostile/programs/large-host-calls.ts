// ends with: WF_SANDBOX_OUTPUT WF_SANDBOX_CPU_BUDGET
// within: 1500 ms
import type { Context } from "../../../sdk/index.ts";

export default async (_event: unknown, ctx: Context) => {
  const object = { apiVersion: "v1", kind: "ConfigMap", data: { big: "x".repeat(1_000_000) } };
  await Promise.all(Array.from({ length: 50 }, () => ctx.kube.create(object)));
};
