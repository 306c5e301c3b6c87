import { chart, helm, namespace, release } from "./helm.ts";

/** What `helm install` tells the user; nothing is asked of any cluster. */
export async function notes(...args: readonly string[]): Promise<string> {
  const said = await helm("install", release, chart, "--namespace", namespace, "--dry-run=client", ...args);
  return said.split("\nNOTES:\n")[1] ?? "";
}
