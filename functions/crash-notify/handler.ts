import { defineBatchHandler, RetryAfter } from "@watchfire/sdk";
import type { V1Pod } from "@watchfire/sdk/kubernetes";
import type { BatchHandler } from "./function.d.ts";

/** Returns a line for each container that loops: its place, its number of restarts, and how it ended last. */
function linesOf({ metadata, status }: V1Pod): string[] {
  const looping = (status?.containerStatuses ?? []).filter(
    ({ state }) => state?.waiting?.reason === "CrashLoopBackOff",
  );
  return looping.map(({ name, restartCount, lastState }) => {
    const { exitCode, reason } = lastState?.terminated ?? {};
    const end = exitCode === undefined ? "" : `, ended with ${exitCode}${reason === undefined ? "" : ` (${reason})`}`;
    return `${metadata?.namespace}/${metadata?.name} ${name}: ${restartCount} restarts${end}`;
  });
}

export default defineBatchHandler(async (events, ctx) => {
  const lines = events.flatMap(({ object }) => linesOf(object));
  const url = ctx.env.CRASH_NOTIFY_URL;
  if (!url) {
    for (const line of lines) ctx.log.warn(line);
    return;
  }
  const body = JSON.stringify({ text: ["In a crash loop:", ...lines].join("\n") });
  const response = await ctx.fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  // The webhook's failure is not caused by a Pod: all of them wait, and the batch is not halved to find a culprit.
  if (response.status === 429 || response.status >= 500) throw new RetryAfter("30s", `it answers ${response.status}`);
  if (!response.ok) throw new Error(`the webhook answers ${response.status}`);
}) satisfies BatchHandler;
