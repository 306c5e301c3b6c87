import { existsSync } from "node:fs";
import { join } from "node:path";
import { WatchfireError } from "../../errors.ts";
import type { LeaseApi } from "../../lease/lease-api.ts";
import { positionsKey } from "../positions/open-store.ts";

/** One request, in milliseconds. */
const requestMs = 3_000;

/**
 * Writes on the runtime's Lease that its positions are with a fleet of so many slots. Whoever runs alone leaves them in
 * peace then. A replica with another number of slots would look for functions in other places, and is refused.
 * @throws WatchfireError WF_LEASE_SLOTS; WF_CHECKPOINT_ELSEWHERE where there are positions that are no fleet's
 */
export async function claimFleet(api: LeaseApi, slots: number, data: string): Promise<void> {
  const place = `fleet/${slots}`;
  const annotations = { [positionsKey]: place };
  for (;;) {
    const lease = await api.get(requestMs);
    const found = lease?.annotations[positionsKey] ?? "";
    if (found === place) return;
    if (found.startsWith("fleet/")) {
      const actual = `--slots ${slots}`;
      throw new WatchfireError("WF_LEASE_SLOTS", { what: `it has ${found.slice("fleet/".length)} slots`, actual });
    }
    if (lease && (found !== "" || lease.holder !== "")) {
      const where = found === "" ? `with ${lease.holder}` : `in ${found}`;
      throw elsewhere(`the positions are ${where}, and a fleet takes none over`);
    }
    if (existsSync(join(data, "checkpoint.db"))) throw elsewhere("the data folder holds positions of a runtime alone");
    const change = { holder: "", annotations };
    const written = await (lease ? api.update(lease, change, requestMs) : api.create(change, requestMs));
    if (written !== "conflict") return;
  }
}

const elsewhere = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what });
