import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ListReason, ListReceiver, Subscriber } from "../fanout/subscriber.ts";
import type { Change } from "../scan/change.ts";

/** A subscriber that needs a list. */
export interface Applicant {
  readonly subscriber: Subscriber;
  /** Up to where it has everything; undefined where it has nothing. */
  readonly at: ResourceVersion | undefined;
  readonly reason: ListReason;
  /** Not before this, on the monotonic clock. */
  readonly dueAt: number;
}

/** What became of those for whom a list was read. */
interface Listed {
  readonly counted: readonly Subscriber[];
  /** Those who want a second opinion. */
  readonly held: readonly Applicant[];
  /** Thrown by one of them: those after it do not have the list. */
  readonly fault: unknown;
}

/** One list that is being read for those who were there when it began. Who comes later has no part in it. */
export class Listing {
  private takers: { readonly applicant: Applicant; readonly receiver: ListReceiver }[] = [];
  /** Items handed on. */
  items = 0;

  /** Somebody throws: then nobody takes part. */
  constructor(applicants: readonly Applicant[]) {
    try {
      for (const applicant of applicants) {
        const { subscriber, reason, at } = applicant;
        this.takers.push({ applicant, receiver: subscriber.list(reason, at) });
      }
    } catch (error) {
      this.abort();
      throw error;
    }
  }

  get size(): number {
    return this.takers.length;
  }

  get applicants(): readonly Applicant[] {
    return this.takers.map(({ applicant }) => applicant);
  }

  item(change: Change): void {
    this.items++;
    for (const { receiver } of this.takers) receiver.item(change);
  }

  leave(subscriber: Subscriber): void {
    const left = this.takers.filter(({ applicant }) => applicant.subscriber === subscriber);
    this.takers = this.takers.filter((taker) => !left.includes(taker));
    for (const { receiver } of left) receiver.abort();
  }

  /** True if the list, complete at this resourceVersion, contradicts what somebody knows who is not told of a rewind anyway. */
  provesRewind(resourceVersion: ResourceVersion): boolean {
    const others = this.takers.filter(({ applicant }) => applicant.reason !== "rv-rewind");
    return others.some(({ receiver }) => receiver.provesRewind?.(resourceVersion));
  }

  /** The list is complete. Who is left in here afterwards does not have it, and is to be aborted. */
  end(resourceVersion: ResourceVersion): Listed {
    const counted: Subscriber[] = [];
    const held: Applicant[] = [];
    let fault: unknown;
    for (let next = this.takers.shift(); next; next = this.takers.shift()) {
      const { applicant, receiver } = next;
      try {
        if (receiver.end(resourceVersion) === "counted") counted.push(applicant.subscriber);
        else held.push(applicant);
      } catch (error) {
        // It has had its end: only the others are aborted.
        this.takers.unshift({ applicant, receiver: spent });
        fault = error;
        break;
      }
    }
    return { counted, held, fault };
  }

  /** Nothing of it counts. */
  abort(): void {
    for (const { receiver } of this.takers.splice(0)) receiver.abort();
  }

  /** Resolves when nobody is congested any more; undefined where nobody is. */
  get congested(): Promise<void> | undefined {
    const waits = this.takers.flatMap(({ applicant }) => applicant.subscriber.congested ?? []);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
  }
}

/** Stands for a receiver that has had its end. */
const spent: ListReceiver = { item() {}, end: () => "held", abort() {} };
