import type { WatchfireError } from "../base/errors.ts";
import type { Elector } from "../lease/elector.ts";
import type { FleetLeases } from "./fleet-leases.ts";
import { answersKey, ownerOf, readyKey } from "./lease-observer.ts";

/** Shows that this replica is alive: a separate Lease that only it takes and renews. */
export class Membership {
  private readonly elector: Elector;
  private readonly identity: string;

  constructor(elector: Elector, identity: string) {
    this.elector = elector;
    this.identity = identity;
  }

  /** Whether it holds its own Lease. Once lost, it is never held again. */
  get holds(): boolean {
    return this.elector.holds;
  }

  /** Why its own Lease cannot be annotated; `undefined` if it can. */
  get unwritten(): WatchfireError | undefined {
    return this.elector.unwritten;
  }

  /** The name of this process on slots' Leases; `undefined` before it has its own Lease, and after it has lost it. */
  get owner(): string | undefined {
    const { fence } = this.elector;
    return fence && ownerOf(this.identity, fence.number);
  }

  /** Returns the name of this replica's Lease. */
  leaseIn({ nameOfMember }: Pick<FleetLeases, "nameOfMember">): string {
    return nameOfMember(this.identity);
  }

  /**
   * Takes its own Lease and announces that it takes slots. `announcement`: how it answers other replicas, if it does. @throws the signal's
   * reason; WF_LEASE_LOST
   */
  async join(signal: AbortSignal, announcement?: string): Promise<void> {
    await this.elector.campaign(signal);
    await this.elector.annotate({ [readyKey]: String(this.elector.fence?.number), [answersKey]: announcement });
  }

  /** Announces that it takes no more slots. It keeps those that it has. @throws WF_LEASE_LOST */
  async retire(): Promise<void> {
    await this.elector.annotate({ [readyKey]: "" });
  }

  /** Releases its own Lease. Work that needs slots must have ended. Never rejects. */
  leave(): Promise<void> {
    return this.elector.release();
  }
}
