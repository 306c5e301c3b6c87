import type { WatchfireError } from "../base/errors.ts";
import type { Elector } from "../lease/elector.ts";
import type { FleetLeases } from "./fleet-leases.ts";
import { ownerOf, readyKey } from "./lease-observer.ts";

/** That this replica lives: a Lease of its own, which it alone takes and renews. */
export class Membership {
  private readonly elector: Elector;
  private readonly identity: string;

  constructor(elector: Elector, identity: string) {
    this.elector = elector;
    this.identity = identity;
  }

  /** Whether it lives, by the Lease's laws: once it does not, it never does again. */
  get holds(): boolean {
    return this.elector.holds;
  }

  /** Why its own Lease cannot be annotated, while that is so. */
  get unwritten(): WatchfireError | undefined {
    return this.elector.unwritten;
  }

  /** How slots' Leases name this process; undefined before it has its own Lease, and once it has lost it. */
  get owner(): string | undefined {
    const { fence } = this.elector;
    return fence && ownerOf(this.identity, fence.number);
  }

  /** What its own Lease is called among these. */
  leaseIn({ nameOfMember }: Pick<FleetLeases, "nameOfMember">): string {
    return nameOfMember(this.identity);
  }

  /** Says that it takes slots from now on. @throws the signal's reason; WF_LEASE_LOST */
  async join(signal: AbortSignal): Promise<void> {
    await this.elector.campaign(signal);
    await this.elector.annotate({ [readyKey]: String(this.elector.fence?.number) });
  }

  /** Says that it takes none any more; those that it has stay its own. @throws WF_LEASE_LOST */
  async retire(): Promise<void> {
    await this.elector.annotate({ [readyKey]: "" });
  }

  /** What needs slots must have ended. Never rejects. */
  leave(): Promise<void> {
    return this.elector.release();
  }
}
