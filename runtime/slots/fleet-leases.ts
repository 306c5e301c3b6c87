import { createHash } from "node:crypto";
import { z } from "zod";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { type LeaseApi, leaseApi, leaseError, leases } from "../lease/lease-api.ts";
import { type LeaseRecord, readLease } from "../lease/lease-record.ts";

/** Label on each Lease of a fleet, with the runtime that it belongs to. */
const fleetLabel = "watchfire.dev/fleet";

/** Maximum bytes of a list. A Lease takes a kilobyte, and a fleet has one for each slot and each replica. */
const listLimit = 16 * 1024 * 1024;

const listSchema = z.looseObject({ items: z.array(z.unknown()) });

/**
 * The Leases of one fleet. Calls throw the transport's errors, with WF_KUBE_CREDENTIALS for a 401 and WF_KUBE_FORBIDDEN for a
 * 403.
 */
export interface FleetLeases {
  /** Returns all of them by name, as the API server has them now. */
  list(timeoutMs: number): Promise<ReadonlyMap<string, LeaseRecord>>;
  /** The Lease of a slot. */
  slot(slot: number): LeaseApi;
  /** The Lease by which the replica of this identity shows that it is alive. */
  member(identity: string): LeaseApi;
  /** Deletes a Lease unless it has changed. */
  remove(record: LeaseRecord, timeoutMs: number): Promise<void>;
  readonly nameOfSlot: (slot: number) => string;
  readonly nameOfMember: (identity: string) => string;
  readonly isMember: (name: string) => boolean;
}

/** @param label the account, in the form of a label value */
export function fleetLeases(
  transport: KubeTransport,
  { namespace, account, label }: { readonly namespace: string; readonly account: string; readonly label: string },
): FleetLeases {
  const labels = { [fleetLabel]: label };
  const query = { labelSelector: `${fleetLabel}=${label}` };
  const path = resourcePath(leases, namespace);
  const nameOfSlot = (slot: number) => `${account}-slot-${slot}`;
  const nameOfMember = (identity: string) =>
    `${account}-replica-${createHash("sha256").update(identity).digest("hex").slice(0, 16)}`;
  return {
    nameOfSlot,
    nameOfMember,
    isMember: (name) => name.startsWith(`${account}-replica-`),
    async list(timeoutMs) {
      try {
        const answer = await transport.json<unknown>({ method: "GET", path, query, timeoutMs }, listLimit);
        return new Map(
          listSchema.parse(answer).items.map((item) => {
            const lease = readLease(item);
            return [lease.name, lease] as const;
          }),
        );
      } catch (error) {
        throw leaseError(error);
      }
    },
    slot: (slot) => leaseApi(transport, namespace, nameOfSlot(slot), labels),
    member: (identity) => leaseApi(transport, namespace, nameOfMember(identity), labels),
    async remove({ name, uid, resourceVersion }, timeoutMs) {
      const body = JSON.stringify({ preconditions: { uid, resourceVersion } });
      await transport.json({ method: "DELETE", path: resourcePath(leases, namespace, name), body, timeoutMs });
    },
  };
}
