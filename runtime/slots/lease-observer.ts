import { leaseMs, mostLeaseMs } from "../lease/elector.ts";
import type { LeaseRecord } from "../lease/lease-record.ts";
import type { FleetLeases } from "./fleet-leases.ts";

/**
 * Annotation on a replica's own Lease: the number of the term in which it takes slots. With another number, or without it, the
 * replica takes no slots.
 */
export const readyKey = "watchfire.dev/ready";

/** Annotation on a replica's own Lease: where, and with which public key, it answers other replicas. */
export const answersKey = "watchfire.dev/answers";

/** Milliseconds without a sign of life after which a replica's Lease is deleted. */
const forgottenMs = 600_000;

/**
 * Returns a slot owner's name: a replica and the term of that replica's Lease, so that a restarted process differs from its
 * predecessor.
 */
export const ownerOf = (identity: string, term: number): string => `${identity}#${term}`;

/** The state of the fleet as one replica sees it. */
export interface FleetView {
  /** The live replicas that take slots, as named by `ownerOf`. */
  readonly members: readonly string[];
  /** Live replicas, also those that take no slots, and what each announces about its answers. */
  readonly peers: readonly { readonly owner: string; readonly announcement?: string | undefined }[];
  /** The owner of each slot; `undefined` if it is free or its owner is certainly dead. */
  readonly owners: readonly (string | undefined)[];
  /** The slots' Leases; `undefined` for one that does not exist. */
  readonly slots: readonly (LeaseRecord | undefined)[];
  /** Slots whose Lease is missing and may have been deleted recently. Their owners create them again. */
  readonly lost: ReadonlySet<number>;
  /** Leases of replicas that are certainly dead and have not released them. */
  readonly silent: readonly LeaseRecord[];
  /** Leases of replicas that have been gone for `forgottenMs`. */
  readonly forgotten: readonly LeaseRecord[];
}

/** A replica's Lease when last seen. */
interface Sighting {
  readonly uid: string | undefined;
  readonly version: string;
  /** When the Lease with this uid, and when this version of it, was first seen. */
  readonly madeAt: number;
  readonly at: number;
}

/**
 * Determines which replicas are alive, using only the local clock. A replica is dead once its Lease was unchanged for its
 * duration, 10 s by default: it stopped at 70 % of that after it sent the last renewal that arrived, and never resumes.
 */
export class LeaseObserver {
  private readonly leases: Pick<FleetLeases, "nameOfSlot" | "nameOfMember" | "isMember">;
  private seen = new Map<string, Sighting>();
  /** For each slot: whether its Lease was ever seen, and since when it is missing. */
  private readonly seenSlots = new Map<number, { readonly wasThere: boolean; readonly goneAt: number | undefined }>();

  /** The longest duration of a replica's Lease, in milliseconds. They differ while a new one is rolled out. */
  private leaseMs = leaseMs;

  constructor(leases: Pick<FleetLeases, "nameOfSlot" | "nameOfMember" | "isMember">) {
    this.leases = leases;
  }

  /**
   * Processes a list. `sentAt` and `heardAt`: when the list was requested and received, by the monotonic clock. A change counts
   * from when it was received; a Lease counts as unchanged until the request was sent. `me`: the observer's own name, if it has
   * one yet.
   */
  look(
    listed: ReadonlyMap<string, LeaseRecord>,
    slots: number,
    { sentAt, heardAt, me }: { readonly sentAt: number; readonly heardAt: number; readonly me?: string | undefined },
  ): FleetView {
    const { leases } = this;
    const found = Array.from({ length: slots }, (_, slot) => listed.get(leases.nameOfSlot(slot)));
    const replicas = [...listed.values()].filter(({ name }) => leases.isMember(name));
    for (const { durationMs } of replicas) this.leaseMs = Math.min(mostLeaseMs, Math.max(this.leaseMs, durationMs));
    const named = found.flatMap((lease) => (lease && lease.holder !== "" ? [identityOf(lease.holder)] : []));
    const names = new Set([...replicas.map(({ name }) => name), ...named.map(leases.nameOfMember)]);
    const before = this.seen;
    this.seen = new Map();
    for (const name of names) {
      const lease = listed.get(name);
      const version = JSON.stringify(lease ? [lease.uid, lease.object.spec] : "gone");
      const known = before.get(name);
      const madeAt = known && known.uid === lease?.uid ? known.madeAt : heardAt;
      this.seen.set(name, known?.version === version ? known : { uid: lease?.uid, version, madeAt, at: heardAt });
    }
    const silentMs = (name: string) => sentAt - (this.seen.get(name)?.at ?? heardAt);
    const isDead = (owner: string) => {
      const name = leases.nameOfMember(identityOf(owner));
      const lease = listed.get(name);
      // Released, or taken by the process' successor: the owner has ended.
      if (lease && (lease.holder === "" || lease.transitions > termOf(owner))) return true;
      // A Lease that was deleted and created again counts from 1. The holder of the earlier one has renewed nothing since.
      if (lease && lease.transitions < termOf(owner))
        return sentAt - (this.seen.get(name)?.madeAt ?? heardAt) >= this.leaseMs;
      return silentMs(name) >= this.leaseMs;
    };
    const owners = found.map((lease) =>
      lease && lease.holder !== "" && !isDead(lease.holder) ? lease.holder : undefined,
    );
    const live = replicas.filter(({ name, holder }) => holder !== "" && silentMs(name) < leaseMs);
    return {
      peers: live.map(({ holder, transitions, annotations }) => {
        return { owner: ownerOf(holder, transitions), announcement: annotations[answersKey] };
      }),
      members: replicas
        .filter(
          ({ holder, annotations, transitions }) => holder !== "" && annotations[readyKey] === String(transitions),
        )
        .filter(({ name }) => silentMs(name) < this.leaseMs)
        .map(({ holder, transitions }) => ownerOf(holder, transitions)),
      owners,
      slots: found,
      lost: this.lostSlots(
        found,
        { sentAt, heardAt },
        owners.some((owner) => owner !== undefined && owner !== me),
      ),
      silent: replicas.filter(({ name, holder }) => holder !== "" && silentMs(name) >= this.leaseMs),
      forgotten: replicas.filter(({ name }) => silentMs(name) >= forgottenMs),
    };
  }

  /**
   * Returns the slots whose Lease was recently deleted. An observer that never saw a slot's Lease assumes that it was deleted if
   * others have slots, because the fleet is then not a new one.
   */
  private lostSlots(
    found: FleetView["slots"],
    { sentAt, heardAt }: { readonly sentAt: number; readonly heardAt: number },
    haveOthers: boolean,
  ): Set<number> {
    const lost = new Set<number>();
    for (const [slot, lease] of found.entries()) {
      const { wasThere = false, goneAt = heardAt } = this.seenSlots.get(slot) ?? {};
      this.seenSlots.set(slot, lease ? { wasThere: true, goneAt: undefined } : { wasThere, goneAt });
      if (!lease && (wasThere || haveOthers) && sentAt - goneAt < this.leaseMs) lost.add(slot);
    }
    return lost;
  }
}

const identityOf = (owner: string): string => owner.slice(0, owner.lastIndexOf("#"));
const termOf = (owner: string): number => Number(owner.slice(owner.lastIndexOf("#") + 1));
