import { chart, helm, namespace, release } from "./helm.ts";

/** The output of `helm install`, as a dry run without a cluster. */
export async function notes(...args: readonly string[]): Promise<string> {
  const said = await helm("install", release, chart, "--namespace", namespace, "--dry-run=client", ...args);
  return said.split("\nNOTES:\n")[1] ?? "";
}
