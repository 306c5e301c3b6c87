import type { StateChange, WatchObserver } from "../informer/fanout/observer.ts";
import { sourceKey } from "../informer/fanout/source-spec.ts";
import type { Logger } from "./log.ts";

/** States that need a person, or time; each, and resourceVersions that went back, is closed by a line of its own once it is over. */
const trouble: ReadonlySet<StateChange["to"]> = new Set(["backoff", "forbidden", "missing", "degraded"]);

/** What is told of a kind that a source has not found yet: a definition may well be applied after the functions that watch it. */
export const notServedYet = "kind not served yet";

/** One structured line for each change of a source's state: a warning where something is wrong, and word of its end. */
export function sourceLog(log: Logger): WatchObserver["stateChanged"] {
  const troubled = new Set<string>();
  /** Sources that were served at some time. */
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
