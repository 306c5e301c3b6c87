import { leaseMs } from "../lease/elector.ts";
import type { LeaseRecord } from "../lease/lease-record.ts";
import type { FleetLeases } from "./fleet-leases.ts";

/** On a replica's own Lease: the number of the term in which it takes slots. Another number, or none: it takes none. */
export const readyKey = "watchfire.dev/ready";

/** After so long without a sign of life a replica's Lease is taken away, in milliseconds. */
const forgottenMs = 600_000;

/** Who has a slot: a replica, and the term of its own Lease, so that the process before it is nobody. */
export const ownerOf = (identity: string, term: number): string => `${identity}#${term}`;

/** How the fleet stands, as one replica sees it. */
export interface FleetView {
  /** The replicas that live and take slots, as `ownerOf` names them. */
  readonly members: readonly string[];
  /** Who has each slot; undefined where nobody has it, or who had it is dead for certain. */
  readonly owners: readonly (string | undefined)[];
  /** The slots' Leases; undefined where there is none yet. */
  readonly slots: readonly (LeaseRecord | undefined)[];
  /** Slots whose Lease is not there and may have been deleted a moment ago: whoever has one makes it again. */
  readonly lost: ReadonlySet<number>;
  /** Leases of replicas that are dead for certain, and have not let go of them. */
  readonly silent: readonly LeaseRecord[];
  /** Leases of replicas that are gone for good. */
  readonly forgotten: readonly LeaseRecord[];
}

/** A replica's Lease as it was seen last. */
interface Sighting {
  readonly uid: string | undefined;
  readonly version: string;
  /** When it was first heard of: of the Lease with this uid, and of this version of it. */
  readonly madeAt: number;
  readonly at: number;
}

/**
 * Tells the living from the dead by one's own clock alone. A replica is dead once its Lease was unchanged for 10 s. It
 * stopped to believe in itself 7 s after it sent the last renewal that arrived, and never begins again.
 */
export class LeaseObserver {
  private readonly leases: Pick<FleetLeases, "nameOfSlot" | "nameOfMember" | "isMember">;
  private seen = new Map<string, Sighting>();
  /** By slot, whether its Lease was ever there, and since when it is not. */
  private readonly seenSlots = new Map<number, { readonly wasThere: boolean; readonly goneAt: number | undefined }>();

  constructor(leases: Pick<FleetLeases, "nameOfSlot" | "nameOfMember" | "isMember">) {
    this.leases = leases;
  }

  /**
   * Takes in what was listed. `sentAt` and `heardAt`: when the list was asked for and when it was there, by the monotonic
   * clock. What is new counts from when it was heard, what is unchanged up to when it was asked for. `me`: who looks, if he
   * has a name yet.
   */
  look(
    listed: ReadonlyMap<string, LeaseRecord>,
    slots: number,
    { sentAt, heardAt, me }: { readonly sentAt: number; readonly heardAt: number; readonly me?: string | undefined },
  ): FleetView {
    const { leases } = this;
    const found = Array.from({ length: slots }, (_, slot) => listed.get(leases.nameOfSlot(slot)));
    const replicas = [...listed.values()].filter(({ name }) => leases.isMember(name));
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
      // Let go of, or taken by the process after it: the one that had it has ended.
      if (lease && (lease.holder === "" || lease.transitions > termOf(owner))) return true;
      // A Lease that was deleted and made again counts from 1. Who had the one before it renewed nothing since.
      if (lease && lease.transitions < termOf(owner))
        return sentAt - (this.seen.get(name)?.madeAt ?? heardAt) >= leaseMs;
      return silentMs(name) >= leaseMs;
    };
    const owners = found.map((lease) =>
      lease && lease.holder !== "" && !isDead(lease.holder) ? lease.holder : undefined,
    );
    return {
      members: replicas
        .filter(
          ({ holder, annotations, transitions }) => holder !== "" && annotations[readyKey] === String(transitions),
        )
        .filter(({ name }) => silentMs(name) < leaseMs)
        .map(({ holder, transitions }) => ownerOf(holder, transitions)),
      owners,
      slots: found,
      lost: this.lostSlots(
        found,
        { sentAt, heardAt },
        owners.some((owner) => owner !== undefined && owner !== me),
      ),
      silent: replicas.filter(({ name, holder }) => holder !== "" && silentMs(name) >= leaseMs),
      forgotten: replicas.filter(({ name }) => silentMs(name) >= forgottenMs),
    };
  }

  /** One that never saw a slot's Lease takes it for a deleted one where others have slots: the fleet is no new one then. */
  private lostSlots(
    found: FleetView["slots"],
    { sentAt, heardAt }: { readonly sentAt: number; readonly heardAt: number },
    haveOthers: boolean,
  ): Set<number> {
    const lost = new Set<number>();
    for (const [slot, lease] of found.entries()) {
      const { wasThere = false, goneAt = heardAt } = this.seenSlots.get(slot) ?? {};
      this.seenSlots.set(slot, lease ? { wasThere: true, goneAt: undefined } : { wasThere, goneAt });
      if (!lease && (wasThere || haveOthers) && sentAt - goneAt < leaseMs) lost.add(slot);
    }
    return lost;
  }
}

const identityOf = (owner: string): string => owner.slice(0, owner.lastIndexOf("#"));
const termOf = (owner: string): number => Number(owner.slice(owner.lastIndexOf("#") + 1));
