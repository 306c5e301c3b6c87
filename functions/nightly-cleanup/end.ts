import type { V1Pod } from "@watchfire/sdk/kubernetes";

/** When a Pod was done, in epoch milliseconds: its last container's end. Undefined while it is not, or where nothing says. */
export function endOf({ status }: V1Pod): number | undefined {
  if (status?.phase !== "Succeeded" && status?.phase !== "Failed") return undefined;
  const ends = (status.containerStatuses ?? []).map(({ state }) => Date.parse(String(state?.terminated?.finishedAt)));
  const known = ends.filter((end) => !Number.isNaN(end));
  return known.length > 0 ? Math.max(...known) : undefined;
}
