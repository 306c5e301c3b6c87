import { byAge, isNewer, isUpTo, newerOf, type ResourceVersion } from "../../base/resource-version.ts";
import type { Change } from "../scan/change.ts";
import { SkipIndex } from "./skip-index.ts";
import type { Subscriber } from "./subscriber.ts";

/** A subscriber, and up to where it has everything. */
export interface Placed {
  readonly subscriber: Subscriber;
  readonly at: ResourceVersion;
}

interface InformerMember {
  readonly subscriber: Subscriber;
  /** Up to where it had everything when it came, or when the last connection ended. */
  at: ResourceVersion;
  /** The connection that runs brings it what follows. */
  covered: boolean;
  /** The connection replays what it has, which is kept from it. */
  skipping: boolean;
  /** While it is found out how far the server's history reaches: it reaches back to here. */
  proven: boolean;
}

/** The server's word that its history does not reach back to where a stream was to begin. */
interface Expiry {
  readonly from: ResourceVersion;
  /** Where its history begins, if it says so. */
  readonly oldest: ResourceVersion | undefined;
  /** It had accepted the stream before, so that nobody is known to be served. */
  readonly refuted: boolean;
}

const isComparable = (a: ResourceVersion, b: ResourceVersion): boolean => isUpTo(a, b) || isUpTo(b, a);

/** The subscribers of one stream. Each has a position, and is spared what it has. */
export class Members {
  private members: InformerMember[] = [];
  /** Those of them whom most changes pass by, and those who are told of each. */
  private readonly bystanders = new SkipIndex();
  private told: InformerMember[] = [];
  /** The server did not say how far its history reaches back: it is being found out by trying. */
  private searching = false;

  get size(): number {
    return this.members.length;
  }

  /** Whether it is not known yet of everybody if the server's history reaches back to where they stand. */
  get unsure(): boolean {
    return this.searching;
  }

  /** Whether a stream could serve this position together with all of theirs. */
  suits(at: ResourceVersion): boolean {
    return this.members.every((member) => isComparable(member.at, at));
  }

  /** @param covered a connection runs that has not passed its position. */
  join({ subscriber, at }: Placed, covered: boolean): void {
    const member = { subscriber, at, covered, skipping: covered, proven: covered };
    this.members.push(member);
    this.told.push(member);
  }

  leave(subscriber: Subscriber): void {
    this.bystanders.delete(subscriber);
    const isOther = (member: InformerMember) => member.subscriber !== subscriber;
    this.members = this.members.filter(isOther);
    this.told = this.told.filter(isOther);
  }

  /** Those leave who are meant, with their positions. @param received up to where the connection has brought everything. */
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

  /** Those leave whom the connection that runs does not serve. */
  moveOutUncovered(): Placed[] {
    const uncovered = new Set(this.members.filter(({ covered }) => !covered).map(({ subscriber }) => subscriber));
    return this.moveOut(undefined, ({ subscriber }) => uncovered.has(subscriber));
  }

  *subscribers(): Iterable<Subscriber> {
    for (const { subscriber } of this.members) yield subscriber;
  }

  /** Whether anybody wants changes of objects in a namespace. */
  want(namespace: string): boolean {
    return this.members.some(({ subscriber }) => subscriber.wants?.(namespace) ?? true);
  }

  /** Where each stands. */
  *positions(received: ResourceVersion | undefined): Iterable<ResourceVersion> {
    for (const member of this.members) yield positionOf(member, received);
  }

  /**
   * Where the next connection begins: at the oldest position. While it is found out how far the server's history
   * reaches, it begins in the middle of those not yet told apart. So a thousand positions cost ten connections.
   * Undefined where nobody is here.
   */
  start(): ResourceVersion | undefined {
    const sorted = this.members.toSorted((a, b) => byAge(a.at, b.at));
    const firstProven = sorted.findIndex(({ proven }) => proven);
    const untried = firstProven < 0 ? sorted.length : firstProven;
    return sorted[this.searching ? untried >> 1 : 0]?.at;
  }

  /**
   * A connection that begins there is open.
   * @returns whether it serves everybody; where not, the search goes on, or they belong to a stream of their own.
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

  /** The connection has ended. */
  uncover(received: ResourceVersion | undefined): void {
    this.tellAll();
    for (const member of this.members) {
      member.at = positionOf(member, received);
      member.covered = false;
    }
  }

  /**
   * Who stands at `from`, or before it, needs a list, and by the server's word who stands before `oldest`. The others are
   * tried from where they stand, whatever the server said, so that none can lose an event by it. No connection runs.
   * @returns those who need a list, who leave.
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
    for (const member of this.told) {
      const spared = this.isSpared(member, change.meta.resourceVersion);
      // A deletion may carry the resourceVersion of the object's last state, which it has.
      const isNews = spared && member.covered && change.type === "Deleted" && member.subscriber.isNews?.(change);
      if (!spared || isNews) member.subscriber.change(change);
      if (!spared && member.subscriber.interest) isReady = true;
    }
    if (isReady) this.standBy();
  }

  /** Who has come to where the connection is, and asks for a value alone, is told of no other from the next change on. */
  private standBy(): void {
    for (const { subscriber, covered, skipping } of this.told) {
      const { interest } = subscriber;
      if (covered && !skipping && interest) this.bystanders.add(subscriber, interest);
    }
    this.regroup();
  }

  private tellAll(): void {
    this.bystanders.clear();
    this.regroup();
  }

  private regroup(): void {
    this.told = this.members.filter(({ subscriber }) => !this.bystanders.has(subscriber));
  }

  bookmark(resourceVersion: ResourceVersion): void {
    for (const member of this.members) {
      if (!this.isSpared(member, resourceVersion)) member.subscriber.bookmark(resourceVersion);
    }
  }

  /**
   * Resolves when nobody is congested any more; undefined where nobody is who was told of changes. Of bystanders those alone are asked
   * who were told of one since this gave undefined. Once there is somebody to wait for, all others show how quick they are meanwhile.
   */
  untilFree(): Promise<void> | undefined {
    if (!this.isAnyoneCongested()) {
      this.bystanders.forgetTold();
      return undefined;
    }
    const waits = this.members.map(({ covered, subscriber }) => (covered ? subscriber.congested : undefined));
    return Promise.all(waits).then(() => undefined);
  }

  private isAnyoneCongested(): boolean {
    for (const { covered, subscriber } of this.told) if (covered && subscriber.congested) return true;
    for (const subscriber of this.bystanders.toldLately) if (subscriber.congested) return true;
    return false;
  }

  /** Whether it has that already, or is not served. */
  private isSpared(member: InformerMember, resourceVersion: ResourceVersion): boolean {
    if (!member.covered) return true;
    if (!member.skipping) return false;
    member.skipping = isUpTo(resourceVersion, member.at);
    return member.skipping;
  }
}

/** One that a replay has not yet brought back to where it was is still there, not where the replay broke off. */
const positionOf = ({ covered, at }: InformerMember, received: ResourceVersion | undefined): ResourceVersion =>
  covered && received !== undefined ? newerOf(at, received) : at;
