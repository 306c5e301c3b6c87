import { byAge, isNewer, isUpTo, newerOf, type ResourceVersion } from "../../base/resource-version.ts";
import type { Change } from "../scan/change.ts";
import { SkipIndex } from "./skip-index.ts";
import type { Subscriber } from "./subscriber.ts";

/** A subscriber and the resourceVersion up to which it has received everything. */
export interface Placed {
  readonly subscriber: Subscriber;
  readonly at: ResourceVersion;
}

interface InformerMember {
  readonly subscriber: Subscriber;
  /** The resourceVersion up to which it had everything when it joined, or when the last connection ended. */
  at: ResourceVersion;
  /** True if the running connection delivers everything after `at`. */
  covered: boolean;
  /** True while the connection replays changes that this subscriber already has; they are withheld from it. */
  skipping: boolean;
  /** True once the server's history is known to reach back to `at`. Used during the search for where the history begins. */
  proven: boolean;
}

/** The server's answer 410: it no longer has the resourceVersion at which a stream was to begin. */
interface Expiry {
  readonly from: ResourceVersion;
  /** Start of the server's history, if the answer says so. */
  readonly oldest: ResourceVersion | undefined;
  /** True if the server had accepted the stream before. `proven` is then void for all members. */
  readonly refuted: boolean;
}

const isComparable = (a: ResourceVersion, b: ResourceVersion): boolean => isUpTo(a, b) || isUpTo(b, a);

/** Subscribers of one stream. Each has its own position and does not receive again what it already has. */
export class Members {
  private members: InformerMember[] = [];
  /** Index of the members that most changes can skip, and of those that receive every change. */
  private readonly bystanders = new SkipIndex();
  private notified: InformerMember[] = [];
  /** True while the start of the server's history is being searched by trial, because the server did not name it. */
  private searching = false;

  get size(): number {
    return this.members.length;
  }

  /** True until the server has accepted every member's resume version. */
  get unsure(): boolean {
    return this.searching;
  }

  /** Whether a stream could serve this position together with those of all members. */
  suits(at: ResourceVersion): boolean {
    return this.members.every((member) => isComparable(member.at, at));
  }

  /** @param covered whether a connection is running that has not yet passed the subscriber's position. */
  join({ subscriber, at }: Placed, covered: boolean): void {
    const member = { subscriber, at, covered, skipping: covered, proven: covered };
    this.members.push(member);
    this.notified.push(member);
  }

  leave(subscriber: Subscriber): void {
    this.bystanders.delete(subscriber);
    const isOther = (member: InformerMember) => member.subscriber !== subscriber;
    this.members = this.members.filter(isOther);
    this.notified = this.notified.filter(isOther);
  }

  /**
   * Removes the members that match and returns them with their positions. @param received the resourceVersion up to which the
   * connection has delivered everything.
   */
  moveOut(received: ResourceVersion | undefined, leaves: (placed: Placed) => boolean = () => true): Placed[] {
    const out: Placed[] = [];
    this.members = this.members.filter((member) => {
      const placed = { subscriber: member.subscriber, at: positionOf(member, received) };
      if (!leaves(placed)) return true;
      out.push(placed);
      this.bystanders.delete(member.subscriber);
      return false;
    });
    this.regroup();
    return out;
  }

  /** Removes and returns the members that the running connection does not serve. */
  moveOutUncovered(): Placed[] {
    const uncovered = new Set(this.members.filter(({ covered }) => !covered).map(({ subscriber }) => subscriber));
    return this.moveOut(undefined, ({ subscriber }) => uncovered.has(subscriber));
  }

  *subscribers(): Iterable<Subscriber> {
    for (const { subscriber } of this.members) yield subscriber;
  }

  /** Whether any member wants changes of objects in a namespace. */
  want(namespace: string): boolean {
    for (const { subscriber } of this.members) if (subscriber.wants?.(namespace) ?? true) return true;
    return false;
  }

  /** Iterates over the members' positions. */
  *positions(received: ResourceVersion | undefined): Iterable<ResourceVersion> {
    for (const member of this.members) yield positionOf(member, received);
  }

  /**
   * Returns where the next connection begins: at the oldest position. During the search for the start of the server's history, it
   * begins in the middle of the undecided positions, so that a thousand positions cost ten connections. `undefined` without
   * members.
   */
  start(): ResourceVersion | undefined {
    const sorted = this.members.toSorted((a, b) => byAge(a.at, b.at));
    const firstProven = sorted.findIndex(({ proven }) => proven);
    const untried = firstProven < 0 ? sorted.length : firstProven;
    return sorted[this.searching ? untried >> 1 : 0]?.at;
  }

  /**
   * Records that a connection from this position is open.
   * @returns whether it serves every member. If not, the search continues, or the rest belong in a stream of their own.
   */
  cover(from: ResourceVersion): boolean {
    let all = true;
    for (const member of this.members) {
      member.covered = isUpTo(from, member.at);
      member.skipping = member.covered;
      member.proven ||= member.covered;
      all &&= member.covered;
    }
    if (this.members.every(({ proven }) => proven)) this.searching = false;
    return all;
  }

  /** Records that the connection has ended. */
  uncover(received: ResourceVersion | undefined): void {
    this.notifyAll();
    for (const member of this.members) {
      member.at = positionOf(member, received);
      member.covered = false;
    }
  }

  /**
   * Removes the members that need a list: those at or before `from` and, if the server names the start of its history, those
   * before `oldest`. The others are tried from their own positions, whatever the server said, so that no member can lose an
   * event. No connection is running at this point.
   * @returns the members that need a list.
   */
  expire({ from, oldest, refuted }: Expiry): Placed[] {
    const expired = this.moveOut(
      undefined,
      ({ at }) => isUpTo(at, from) || !isUpTo(from, at) || (oldest !== undefined && isNewer(oldest, at)),
    );
    if (refuted || !this.searching) for (const member of this.members) member.proven = false;
    this.searching = oldest === undefined && this.members.length > 0;
    return expired;
  }

  change(change: Change): void {
    this.bystanders.change(change);
    let isReady = false;
    for (const member of this.notified) {
      const spared = this.isSpared(member, change.meta.resourceVersion);
      // A deletion may carry the resourceVersion of the object's last state, which the subscriber already has.
      const isNews = spared && member.covered && change.type === "Deleted" && member.subscriber.isNews?.(change);
      if (!spared || isNews) member.subscriber.change(change);
      if (!spared && member.subscriber.skipRule) isReady = true;
    }
    if (isReady) this.standBy();
  }

  /**
   * Moves members that have caught up with the connection and have a skip rule into the skip index, from the next change on.
   */
  private standBy(): void {
    for (const { subscriber, covered, skipping } of this.notified) {
      const { skipRule } = subscriber;
      if (covered && !skipping && skipRule) this.bystanders.add(subscriber, skipRule);
    }
    this.regroup();
  }

  private notifyAll(): void {
    this.bystanders.clear();
    this.regroup();
  }

  private regroup(): void {
    this.notified = this.members.filter(({ subscriber }) => !this.bystanders.has(subscriber));
  }

  bookmark(resourceVersion: ResourceVersion): void {
    for (const member of this.members) {
      if (!this.isSpared(member, resourceVersion)) member.subscriber.bookmark(resourceVersion);
    }
  }

  /**
   * Resolves when no member is congested any more; `undefined` if no member that received a change is congested. Members in the
   * skip index are checked only if they received a change since the last `undefined`. If there is a wait, it includes every
   * congested member, and thereby lets the others show how fast they drain.
   */
  untilFree(): Promise<void> | undefined {
    if (!this.isAnyoneCongested()) {
      this.bystanders.recentlyNotified.clear();
      return undefined;
    }
    const waits = this.members.map(({ covered, subscriber }) => (covered ? subscriber.congested : undefined));
    return Promise.all(waits).then(() => undefined);
  }

  private isAnyoneCongested(): boolean {
    for (const { covered, subscriber } of this.notified) if (covered && subscriber.congested) return true;
    for (const subscriber of this.bystanders.recentlyNotified) if (subscriber.congested) return true;
    return false;
  }

  /** Whether the member already has this resourceVersion, or is not served by the connection. */
  private isSpared(member: InformerMember, resourceVersion: ResourceVersion): boolean {
    if (!member.covered) return true;
    if (!member.skipping) return false;
    member.skipping = isUpTo(resourceVersion, member.at);
    return member.skipping;
  }
}

/** A member whose replay has not caught up yet is still at its own position, not where the replay broke off. */
const positionOf = ({ covered, at }: InformerMember, received: ResourceVersion | undefined): ResourceVersion =>
  covered && received !== undefined ? newerOf(at, received) : at;
