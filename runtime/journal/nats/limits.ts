import type { StreamConfig } from "@nats-io/jetstream";
import { WatchfireError } from "../../base/errors.ts";

/** Which messages of a subject a stream must keep: all of a log and of objects, only the last of bodies. */
type Keeps = "all" | "last";

/**
 * Refuses a stream whose limits would delete messages that nothing has replaced. Such a stream was created or changed by hand.
 * Limits that refuse new messages are allowed.
 * @throws WatchfireError WF_CHECKPOINT_NATS_FORGETS
 */
export function assertKeeps(config: StreamConfig, keeps: Keeps): void {
  const { name, retention, discard, max_age, max_msgs, max_bytes, max_msgs_per_subject } = config;
  const found = {
    ...(retention !== "limits" && { retention }),
    ...(max_age > 0 && { max_age: `${max_age / 1e9}s` }),
    ...(max_msgs >= 0 && discard !== "new" && { max_msgs, discard }),
    ...(max_bytes >= 0 && discard !== "new" && { max_bytes, discard }),
    // The limit of a subject deletes its oldest message whatever `discard` says.
    ...(max_msgs_per_subject > 0 && keeps === "all" && { max_msgs_per_subject }),
  };
  const limits = Object.entries(found).map(([key, value]) => `${key}: ${value}`);
  if (limits.length === 0) return;
  const what = `the stream ${name} has ${limits.join(", ")}`;
  throw new WatchfireError("WF_CHECKPOINT_NATS_FORGETS", { what });
}
