import type { StateChange, WatchObserver } from "../informer/fanout/observer.ts";
import { sourceKey } from "../informer/fanout/source-spec.ts";
import type { Logger } from "./log.ts";

/** States that need a person or time. The end of each, and of a rewind of resourceVersions, is logged. */
const trouble: ReadonlySet<StateChange["to"]> = new Set(["backoff", "forbidden", "missing", "degraded"]);

/** Message for a kind that a source has not found yet: its definition may be applied later than the functions that watch it. */
export const notServedYet = "kind not served yet";

/** Returns a listener that logs each change of a source's state: a warning if something is wrong, and a line when it is over. */
export function sourceLog(log: Logger): WatchObserver["stateChanged"] {
  const troubled = new Set<string>();
  /** Sources that have been served before. */
  const found = new Set<string>();
  return (spec, change: StateChange) => {
    const { apiVersion, kind, namespace, labelSelector, fieldSelector, representation } = spec;
    const line = {
      source: `${apiVersion}/${kind}`,
      ...(namespace && { namespace }),
      ...(labelSelector && { labelSelector }),
      ...(fieldSelector && { fieldSelector }),
      ...(representation && { representation }),
      ...change,
      ...(change.delayMs !== undefined && { delayMs: Math.round(change.delayMs) }),
    };
    const key = sourceKey(spec);
    if (change.to === "listing" || change.to === "watching") found.add(key);
    if (change.to === "missing" && !found.has(key)) {
      if (!troubled.has(key)) log.info(line, notServedYet);
      troubled.add(key);
      return;
    }
    if (trouble.has(change.to) || change.cause === "rewind") {
      troubled.add(key);
      log.warn(line, "source state");
      return;
    }
    const isOver = change.to === "watching" && troubled.delete(key);
    if (change.to === "stopped") for (const keys of [troubled, found]) keys.delete(key);
    if (isOver) log.info(line, "source recovered");
    else log.debug(line, "source state");
  };
}
