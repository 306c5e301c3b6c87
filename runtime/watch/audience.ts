import type { Change } from "./change.ts";
import { compareResourceVersions, newerResourceVersion } from "./resource-version.ts";
import type { ListReason, ListReceiver, Subscriber } from "./subscriber.ts";

/** A subscriber on its way from one source to another, and up to where it has everything. */
export interface Mover {
  readonly subscriber: Subscriber;
  readonly at: string | undefined;
}

interface Member {
  readonly subscriber: Subscriber;
  /** Where it stood when it came from another source; undefined where it says so itself. */
  at: string | undefined;
  /** The stream that runs, or the last list, covers it. Until then it receives nothing. */
  settled: boolean;
  /** The connection being made starts early enough for it. */
  planned: boolean;
  /** While the stream replays what this one had: everything up to here is kept from it. */
  skipThrough: string | undefined;
}

/** Where a connection must start to serve everybody. */
export type Start = { readonly type: "list" } | { readonly type: "watch"; readonly from: string };

/** The subscribers of one source, and what each still lacks of its stream. */
export class Audience {
  private members: Member[] = [];
  /** Those who take part in the list that is being read. */
  private listing: { readonly member: Member; readonly receiver: ListReceiver }[] = [];

  get size(): number {
    return this.members.length;
  }

  /** Somebody joined whom the running stream does not serve. */
  get waiting(): boolean {
    return this.members.some((member) => !member.settled);
  }

  /** Whether nobody here has a position: what comes first is a list. */
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
  join({ subscriber, at }: Mover, received: string | undefined): boolean {
    const from = at ?? subscriber.resumeFrom;
    const order = from === undefined || received === undefined ? undefined : compareResourceVersions(from, received);
    const settled = order !== undefined && order >= 0;
    this.members.push({ subscriber, at, settled, planned: false, skipThrough: settled ? from : undefined });
    return settled;
  }

  /** Everybody leaves, for another source. */
  moveOut(received: string | undefined): Mover[] {
    return this.moving(received, () => true);
  }

  /** Those leave who came too late for the list by which everybody else has got a position. */
  beginners(): Mover[] {
    return this.moving(undefined, isBeginner);
  }

  private moving(received: string | undefined, leaves: (member: Member) => boolean): Mover[] {
    const gone = this.members.filter(leaves);
    this.members = this.members.filter((member) => !gone.includes(member));
    return gone.map((member) => ({ subscriber: member.subscriber, at: positionOf(member, received) }));
  }

  leave(subscriber: Subscriber): void {
    this.members = this.members.filter((member) => member.subscriber !== subscriber);
    for (const { member, receiver } of this.listing) if (member.subscriber === subscriber) receiver.abort();
    this.listing = this.listing.filter(({ member }) => member.subscriber !== subscriber);
  }

  /** The newest position that anybody has, or resourceVersion that anybody knows: no list may be older, and no server's newest resourceVersion is. */
  newest(received: string | undefined): string | undefined {
    let newest = received;
    for (const member of this.members) {
      for (const at of [positionOf(member, received), member.subscriber.newestKnown]) {
        if (at === undefined) continue;
        if (newest === undefined || (compareResourceVersions(at, newest) ?? 0) > 0) newest = at;
      }
    }
    return newest;
  }

  /** Tells everybody the server's newest resourceVersion. */
  serverIsAt(resourceVersion: string): void {
    for (const { subscriber } of this.members) subscriber.serverIsAt?.(resourceVersion);
  }

  /** @param received up to where those who are settled have received everything. */
  start(received: string | undefined): Start {
    let from: string | undefined;
    for (const member of this.members) {
      const at = member.settled ? received : positionOf(member, received);
      if (at === undefined) return { type: "list" };
      const order = from === undefined ? -1 : compareResourceVersions(at, from);
      // Where two positions cannot be ordered, neither is a safe place to start from for the other.
      if (order === undefined) return { type: "list" };
      if (order < 0) from = at;
    }
    if (from === undefined) return { type: "list" };
    for (const member of this.members) member.planned = true;
    return { type: "watch", from };
  }

  /** The stream that `start` was asked for is open. Who joined since still waits. */
  settle(received: string | undefined): void {
    for (const member of this.members) {
      if (!member.planned) continue;
      member.skipThrough = positionOf(member, received);
      member.settled = true;
    }
  }

  change(change: Change): void {
    for (const member of this.members) {
      if (!member.settled || this.skips(member, change.meta.resourceVersion)) continue;
      member.subscriber.change(change);
    }
  }

  bookmark(resourceVersion: string): void {
    for (const member of this.members) {
      if (!member.settled || this.skips(member, resourceVersion)) continue;
      member.subscriber.bookmark(resourceVersion);
    }
  }

  /** A list for all who are here now; who joins later waits for the next. */
  list(reason: ListReason, received: string | undefined): ListReceiver {
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

  private skips(member: Member, resourceVersion: string): boolean {
    if (member.skipThrough === undefined) return false;
    const order = compareResourceVersions(resourceVersion, member.skipThrough);
    if (order !== undefined && order <= 0) return true;
    member.skipThrough = undefined;
    return false;
  }
}

const isBeginner = (member: Member): boolean => !member.settled && positionOf(member, undefined) === undefined;

/**
 * Up to where a subscriber has everything. One that a replay had not yet brought back to where it was is still there,
 * not where the replay broke off.
 */
function positionOf({ settled, at, skipThrough, subscriber }: Member, received: string | undefined) {
  if (!settled) return at ?? subscriber.resumeFrom;
  return received === undefined ? skipThrough : newerResourceVersion(skipThrough, received);
}
