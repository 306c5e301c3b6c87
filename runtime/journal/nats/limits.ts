import type { StreamConfig } from "@nats-io/jetstream";
import { WatchfireError } from "../../base/errors.ts";

/** How many messages of a subject a stream may forget: of a log and of objects none, of bodies all but the last. */
type Keeps = "all" | "last";

/**
 * Refuses a stream that would forget by itself what nothing has replaced: whoever made it by hand, or changed it, gave it
 * such limits. One that refuses what is too much may have them.
 * @throws WatchfireError WF_CHECKPOINT_NATS_FORGETS
 */
export function assertKeeps(config: StreamConfig, keeps: Keeps): void {
  const { name, retention, discard, max_age, max_msgs, max_bytes, max_msgs_per_subject } = config;
  const found = {
    ...(retention !== "limits" && { retention }),
    ...(max_age > 0 && { max_age: `${max_age / 1e9}s` }),
    ...(max_msgs >= 0 && discard !== "new" && { max_msgs, discard }),
    ...(max_bytes >= 0 && discard !== "new" && { max_bytes, discard }),
    // Of a subject the oldest goes whatever `discard` says.
    ...(max_msgs_per_subject > 0 && keeps === "all" && { max_msgs_per_subject }),
  };
  const limits = Object.entries(found).map(([key, value]) => `${key}: ${value}`);
  if (limits.length === 0) return;
  const what = `the stream ${name} has ${limits.join(", ")}`;
  throw new WatchfireError("WF_CHECKPOINT_NATS_FORGETS", { what });
}
