import type { V1Pod } from "@watchfire/sdk/kubernetes";

/**
 * Returns when a Pod was done, in epoch milliseconds: the end of its last container. Undefined while it is not done, or if no
 * time is recorded.
 */
export function endOf({ status }: V1Pod): number | undefined {
  if (status?.phase !== "Succeeded" && status?.phase !== "Failed") return undefined;
  const ends = (status.containerStatuses ?? []).map(({ state }) => Date.parse(String(state?.terminated?.finishedAt)));
  const known = ends.filter((end) => !Number.isNaN(end));
  return known.length > 0 ? Math.max(...known) : undefined;
}
