import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import { changeOf, type History } from "./history.ts";
import type { Dice } from "./random.ts";

/**
 * A source as a subscriber sees it: watches end, replay and expire, and are listed again. Calls `gap` when history was lost,
 * because
 * only net changes can be known then.
 */
export class SimulatedSource {
  private readonly history: History;
  private readonly subscriber: Subscriber;
  private readonly dice: Dice;
  private readonly gap: () => void;
  /** The revision up to which it has received everything; `undefined` before it has connected. */
  private received: number | undefined;
  private connected = false;
  /** True while the subscriber is suspended for lack of room. */
  private left = false;
  /** True if it has resumed since the last list. */
  private returned = false;

  constructor(history: History, subscriber: Subscriber, dice: Dice, gap: () => void) {
    this.gap = gap;
    this.history = history;
    this.subscriber = subscriber;
    this.dice = dice;
    subscriber.placed?.({ stepAside: (room) => this.stepAside(room) });
  }

  private stepAside(room: () => Promise<void>): void {
    this.left = true;
    this.received = undefined;
    this.connected = false;
    void room().then(() => {
      this.left = false;
      this.returned = true;
    });
  }

  /** Makes a random event happen to the watch. */
  step(): void {
    if (this.left || this.subscriber.congested) return;
    if (!this.connected) {
      this.connect();
      return;
    }
    const roll = this.dice.next();
    if (roll < 0.1) this.connected = false;
    else if (roll < 0.16) this.list(true);
    else if (roll < 0.3) this.bookmark();
    else if (roll < 0.38) this.replay();
    else this.receive(1 + this.dice.below(4));
  }

  /** Receives everything there is. Returns whether the subscriber accepted it. */
  catchUp(): boolean {
    while (!this.connected && !this.left) this.connect();
    if (!this.left) this.receive(Number.POSITIVE_INFINITY);
    this.bookmark();
    return !this.left;
  }

  private connect(): void {
    const resume = this.subscriber.resumeFrom;
    const from = this.received ?? (resume === undefined ? undefined : Number(resume));
    if (from === undefined) this.list(false);
    else if (from < this.history.compacted) this.list(true);
    else {
      this.received = from;
      this.connected = true;
    }
  }

  private list(lost: boolean): void {
    const { history, subscriber, dice } = this;
    const gapFrom = this.received === undefined ? undefined : resourceVersion(String(this.received));
    const receiver = subscriber.list(lost ? "relist" : "initial", gapFrom);
    const items = [...history.at(history.now).values()];
    if (dice.chance(0.2)) {
      for (const item of items.slice(0, dice.below(items.length + 1)))
        receiver.item(changeOf({ ...item, type: "Added" }));
      receiver.abort();
      this.connected = false;
      // The subscriber has received changes newer than the history that a stream would resume from, so only a list may follow.
      if (lost && subscriber.resumeFrom === undefined) {
        this.received = undefined;
        this.gap();
      }
      return;
    }
    for (const item of items) receiver.item(changeOf({ ...item, type: "Added" }));
    // A subscriber that leaves during a list does not receive the list's end.
    if (this.left) receiver.abort();
    else receiver.end(resourceVersion(String(history.now)));
    if (lost || this.returned) this.gap();
    if (this.left) return;
    this.returned = false;
    this.received = history.now;
    this.connected = true;
  }

  private receive(count: number): void {
    for (const revision of this.history.after(this.received ?? 0).slice(0, count)) {
      this.subscriber.change(changeOf(revision));
      if (this.left) return;
      this.received = revision.rv;
    }
  }

  /** Repeats changes that the watch has passed, as a server may. */
  private replay(): void {
    const passed = this.history.log.filter((it) => it.rv <= (this.received ?? 0) && it.rv > this.history.compacted);
    for (const revision of passed.slice(-this.dice.below(5) - 1)) this.subscriber.change(changeOf(revision));
  }

  private bookmark(): void {
    if (this.left) return;
    const next = this.history.after(this.received ?? 0)[0];
    this.received = next ? next.rv - 1 : this.history.now;
    this.subscriber.bookmark(resourceVersion(String(this.received)));
  }
}
