import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Environment } from "../base/config.ts";
import type { Candidate } from "../host/components.ts";

/**
 * Returns the identity under which this process holds the Lease. A container that restarts keeps it, so that it takes the Lease
 * again at once; another pod has another one.
 */
export function candidate({ podName, podUid }: Environment): Candidate {
  const pod = podName ?? hostname();
  return { pod, identity: podUid ? `${pod}_${podUid}` : `${pod}_${process.pid}_${randomBytes(4).toString("hex")}` };
}
