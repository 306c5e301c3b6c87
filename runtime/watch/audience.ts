import { byAge, isNewer, isUpTo, newerOf, type ResourceVersion } from "../resource-version.ts";
import type { Change } from "./change.ts";
import type { ListReason, ListReceiver, Subscriber } from "./subscriber.ts";

/** A subscriber on its way from one source to another, and up to where it has everything. */
export interface Mover {
  readonly subscriber: Subscriber;
  readonly at: ResourceVersion | undefined;
  /** Its position has expired: the server's history does not reach back to it, and only a list brings it on. */
  readonly expired?: boolean;
}

interface Member {
  readonly subscriber: Subscriber;
  /** Where it stood when it came from another source; undefined where it says so itself. */
  at: ResourceVersion | undefined;
  /** The stream that runs, or the last list, covers it. Until then it receives nothing. */
  settled: boolean;
  /** Its position has expired; a list is due. */
  expired: boolean;
  /** While the stream replays what this one had: everything up to here is kept from it. */
  skipThrough: ResourceVersion | undefined;
}

/** Where a connection must start to serve everybody. */
export type Start = { readonly type: "list" } | { readonly type: "watch"; readonly from: ResourceVersion };

/** The server's word that its history does not reach back to where a stream was to go on from. */
export interface Expiry {
  readonly from: ResourceVersion;
  /** Where its history begins, if it says so. */
  readonly oldest: ResourceVersion | undefined;
  /** It had accepted the stream before, so that nobody is known to be served. */
  readonly refuted: boolean;
  /** Up to where those who are settled have received everything. */
  readonly received: ResourceVersion | undefined;
}

/** The subscribers of one source, and what each still lacks of its stream. */
export class Audience {
  private members: Member[] = [];
  /** Those who take part in the list that is being read. */
  private listing: { readonly member: Member; readonly receiver: ListReceiver }[] = [];
  /** The server did not say how far its history reaches back: it is being found out by trying. */
  private searching = false;

  get size(): number {
    return this.members.length;
  }

  /** Somebody is here whom the running stream does not serve, and no list beside it is to. */
  get waiting(): boolean {
    return this.begins || this.members.some((member) => !member.settled && !member.expired);
  }

  /** Whether it is not known yet of everybody if the server's history reaches back to where they stand. */
  get divided(): boolean {
    return this.searching || this.members.some((member) => member.expired);
  }

  /** Whether nobody here has a position of use: what comes first is a list. */
  get begins(): boolean {
    return this.members.every(isBeginner);
  }

  has(subscriber: Subscriber): boolean {
    return this.members.some((member) => member.subscriber === subscriber);
  }

  /**
   * @param received up to where the running stream was received; undefined while none runs.
   * @returns whether the stream serves it as it is: then it only drops what it already has.
   */
  join({ subscriber, at, expired = false }: Mover, received: ResourceVersion | undefined): boolean {
    const from = at ?? subscriber.resumeFrom;
    const settled = !expired && from !== undefined && received !== undefined && isUpTo(received, from);
    this.members.push({ subscriber, at, settled, expired, skipThrough: settled ? from : undefined });
    return settled;
  }

  /** Everybody leaves, for another source. */
  moveOut(received: ResourceVersion | undefined): Mover[] {
    return this.moving(received, () => true);
  }

  /** Those leave who need a list that the others do not: they came too late for it, or only their positions expired. */
  beginners(): Mover[] {
    return this.moving(undefined, isBeginner);
  }

  private moving(received: ResourceVersion | undefined, leaves: (member: Member) => boolean): Mover[] {
    const gone = this.members.filter(leaves);
    this.members = this.members.filter((member) => !gone.includes(member));
    const at = (member: Member) => positionOf(member, received);
    return gone.map((member) => ({ subscriber: member.subscriber, at: at(member), expired: member.expired }));
  }

  leave(subscriber: Subscriber): void {
    this.members = this.members.filter((member) => member.subscriber !== subscriber);
    for (const { member, receiver } of this.listing) if (member.subscriber === subscriber) receiver.abort();
    this.listing = this.listing.filter(({ member }) => member.subscriber !== subscriber);
  }

  /** The newest position that anybody has, or resourceVersion that anybody knows: no list may be older, and no server's newest resourceVersion is. */
  newest(received: ResourceVersion | undefined): ResourceVersion | undefined {
    let newest = received;
    for (const member of this.members) {
      for (const at of [positionOf(member, received), member.subscriber.newestKnown]) {
        if (at === undefined) continue;
        if (newest === undefined || isNewer(at, newest)) newest = at;
      }
    }
    return newest;
  }

  /** Tells everybody that the kind is not served. */
  kindIsMissing(): void {
    for (const { subscriber } of this.members) subscriber.kindIsMissing?.();
  }

  /** Tells everybody the server's newest resourceVersion. */
  serverIsAt(resourceVersion: ResourceVersion): void {
    for (const { subscriber } of this.members) subscriber.serverIsAt?.(resourceVersion);
  }

  /**
   * Where the next connection starts: at the oldest position, or, while it is being found out how far the server's
   * history reaches, in the middle of those not yet told apart, so that a thousand positions cost ten connections.
   * @param received up to where those who are settled have received everything.
   */
  start(received: ResourceVersion | undefined): Start {
    const positions: { readonly at: ResourceVersion; readonly settled: boolean }[] = [];
    for (const member of this.members) {
      const at = positionOf(member, received);
      if (at === undefined) return { type: "list" };
      if (!member.expired) positions.push({ at, settled: member.settled });
    }
    positions.sort((a, b) => byAge(a.at, b.at));
    const ordered = positions.every(({ at }, index) => index === 0 || isUpTo(positions[index - 1]?.at ?? at, at));
    const settled = positions.findIndex((each) => each.settled);
    const untried = settled < 0 ? positions.length : settled;
    const from = positions[this.searching ? untried >> 1 : 0];
    // Where two positions cannot be ordered, neither is a safe place to start from for the other.
    return from && ordered ? { type: "watch", from: from.at } : { type: "list" };
  }

  /** A stream from there is open. Whom it does not reach back to still waits. */
  settle(from: ResourceVersion, received: ResourceVersion | undefined): void {
    for (const member of this.members) {
      const at = positionOf(member, received);
      if (member.expired || at === undefined || !isUpTo(from, at)) continue;
      member.skipThrough = at;
      member.settled = true;
    }
    this.searching &&= this.waiting;
  }

  /**
   * Who stands at `from`, or before it, needs a list, and by the server's word who stands before `oldest`. The others are
   * tried from where they stand, whatever the server said, so that none can lose an event by it.
   * @returns whether there are others. Where there are none, nothing changes, and all share one list.
   */
  expire({ from, oldest, refuted, received }: Expiry): boolean {
    const spared = this.members.filter((member) => {
      const at = member.expired ? undefined : positionOf(member, received);
      if (at === undefined || isUpTo(at, from)) return false;
      return oldest === undefined || !isNewer(oldest, at);
    });
    if (spared.length === 0) return false;
    for (const member of this.members) {
      const expired = !spared.includes(member);
      if (!expired && !refuted) continue;
      member.at = positionOf(member, received);
      member.expired = expired;
      member.settled = false;
    }
    this.searching = oldest === undefined;
    return true;
  }

  change(change: Change): void {
    for (const member of this.members) {
      if (!member.settled || this.skips(member, change.meta.resourceVersion)) continue;
      member.subscriber.change(change);
    }
  }

  bookmark(resourceVersion: ResourceVersion): void {
    for (const member of this.members) {
      if (!member.settled || this.skips(member, resourceVersion)) continue;
      member.subscriber.bookmark(resourceVersion);
    }
  }

  /** A list for all who are here now; who joins later waits for the next. */
  list(reason: ListReason, received: ResourceVersion | undefined): ListReceiver {
    this.listing = this.members.map((member) => {
      const gapFrom = positionOf(member, received);
      // Who began a first list before time went back knows some of what is no more.
      const rewinds = reason === "rv-rewind" && member.subscriber.newestKnown !== undefined;
      const begins = gapFrom === undefined && !rewinds;
      const receiver = member.subscriber.list(begins ? "initial" : reason, gapFrom);
      return { member, receiver };
    });
    return {
      item: (change) => {
        for (const { receiver } of this.listing) receiver.item(change);
      },
      end: (resourceVersion) => {
        // Should one throw, none of those after it has the list.
        for (const { member } of this.listing) {
          member.settled = false;
          member.at = undefined;
          member.expired = false;
        }
        let outcome: "counted" | "held" = "counted";
        for (let next = this.listing.shift(); next; next = this.listing.shift()) {
          next.member.skipThrough = undefined;
          next.member.settled = next.receiver.end(resourceVersion) === "counted";
          if (!next.member.settled) outcome = "held";
        }
        return outcome;
      },
      abort: () => {
        for (const { receiver } of this.listing.splice(0)) receiver.abort();
      },
    };
  }

  /** Resolves when nobody is congested any more; undefined where nobody is. */
  get congested(): Promise<void> | undefined {
    const waits: Promise<void>[] = [];
    for (const member of this.members) {
      const waiting = member.settled ? member.subscriber.congested : undefined;
      if (waiting) waits.push(waiting);
    }
    for (const { member } of this.listing) {
      const waiting = member.settled ? undefined : member.subscriber.congested;
      if (waiting) waits.push(waiting);
    }
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
  }

  private skips(member: Member, resourceVersion: ResourceVersion): boolean {
    if (member.skipThrough === undefined) return false;
    if (isUpTo(resourceVersion, member.skipThrough)) return true;
    member.skipThrough = undefined;
    return false;
  }
}

const isBeginner = (member: Member): boolean =>
  !member.settled && (member.expired || positionOf(member, undefined) === undefined);

/**
 * Up to where a subscriber has everything. One that a replay had not yet brought back to where it was is still there,
 * not where the replay broke off.
 */
function positionOf({ settled, at, skipThrough, subscriber }: Member, received: ResourceVersion | undefined) {
  if (!settled) return at ?? subscriber.resumeFrom;
  return received === undefined ? skipThrough : newerOf(skipThrough, received);
}
