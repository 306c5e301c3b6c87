import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ListReason, ListReceiver, Subscriber } from "../fanout/subscriber.ts";
import type { Change } from "../scan/change.ts";

/** A subscriber that needs a list. */
export interface ListRequester {
  readonly subscriber: Subscriber;
  /** The resourceVersion up to which it has everything; `undefined` if it has nothing. */
  readonly at: ResourceVersion | undefined;
  readonly reason: ListReason;
  /** Earliest start of its list, on the monotonic clock. */
  readonly dueAt: number;
}

/** Outcome of a list for its subscribers. */
interface Listed {
  readonly counted: readonly Subscriber[];
  /** Subscribers that require a second opinion. */
  readonly held: readonly ListRequester[];
  /** Error thrown by a subscriber; those after it have not received the end of the list. */
  readonly fault: unknown;
}

/** One list in progress, for the subscribers present when it began. Later subscribers get the next one. */
export class Listing {
  private takers: { readonly requester: ListRequester; readonly receiver: ListReceiver }[] = [];
  /** Number of items delivered. */
  items = 0;

  /** If any subscriber throws, the whole list is aborted. */
  constructor(requesters: readonly ListRequester[]) {
    try {
      for (const requester of requesters) {
        const { subscriber, reason, at } = requester;
        this.takers.push({ requester, receiver: subscriber.list(reason, at) });
      }
    } catch (error) {
      this.abort();
      throw error;
    }
  }

  get size(): number {
    return this.takers.length;
  }

  get requesters(): readonly ListRequester[] {
    return this.takers.map(({ requester }) => requester);
  }

  item(change: Change): void {
    this.items++;
    for (const { receiver } of this.takers) receiver.item(change);
  }

  leave(subscriber: Subscriber): void {
    const left = this.takers.filter(({ requester }) => requester.subscriber === subscriber);
    this.takers = this.takers.filter((taker) => !left.includes(taker));
    for (const { receiver } of left) receiver.abort();
  }

  /**
   * Returns true if the list, complete at this resourceVersion, contradicts what a subscriber knows that was not already notified
   * of a rewind.
   */
  provesRewind(resourceVersion: ResourceVersion): boolean {
    const others = this.takers.filter(({ requester }) => requester.reason !== "rv-rewind");
    return others.some(({ receiver }) => receiver.provesRewind?.(resourceVersion));
  }

  /** Completes the list. Subscribers still in here afterwards have not received it and must be aborted. */
  end(resourceVersion: ResourceVersion): Listed {
    const counted: Subscriber[] = [];
    const held: ListRequester[] = [];
    let fault: unknown;
    for (let next = this.takers.shift(); next; next = this.takers.shift()) {
      const { requester, receiver } = next;
      try {
        if (receiver.end(resourceVersion) === "counted") counted.push(requester.subscriber);
        else held.push(requester);
      } catch (error) {
        // The subscriber that threw has had its end; only the others are aborted.
        this.takers.unshift({ requester, receiver: spent });
        fault = error;
        break;
      }
    }
    return { counted, held, fault };
  }

  /** Aborts the list for all subscribers; nothing of it counts. */
  abort(): void {
    for (const { receiver } of this.takers.splice(0)) receiver.abort();
  }

  /** Resolves when no subscriber is congested any more; `undefined` if there is no congestion. */
  get congested(): Promise<void> | undefined {
    const waits = this.takers.flatMap(({ requester }) => requester.subscriber.congested ?? []);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
  }
}

/** Placeholder for a receiver that has had its end. */
const spent: ListReceiver = { item() {}, end: () => "held", abort() {} };
