import type { StateChange, WatchObserver } from "../watch/observer.ts";
import type { Logger } from "./log.ts";

/** One structured line for each change of a source's state: a warning where something is wrong. */
export function sourceLog(log: Logger): WatchObserver["stateChanged"] {
  return (spec, change: StateChange) => {
    const { apiVersion, kind, namespace, labelSelector, fieldSelector } = spec;
    const level = ["backoff", "forbidden", "missing", "degraded"].includes(change.to) ? "warn" : "debug";
    const where = {
      source: `${apiVersion}/${kind}`,
      ...(namespace && { namespace }),
      ...(labelSelector && { labelSelector }),
      ...(fieldSelector && { fieldSelector }),
    };
    log[level]({ ...where, ...change }, "source state");
  };
}
