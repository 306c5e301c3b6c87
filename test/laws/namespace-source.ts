import { isNewer, resourceVersion, resourceVersionIn } from "../../runtime/base/resource-version.ts";

import type { ListReason, Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import { type BranchingHistory, changeOf, type State } from "./branching-history.ts";
import type { Dice } from "./random.ts";

/**
 * One namespace's source as a subscriber sees it: it disconnects, replays, relists, and detects that resourceVersions went back.
 */
export class NamespaceSource {
  private readonly history: BranchingHistory;
  private readonly namespace: string;
  private readonly subscriber: Subscriber;
  private readonly dice: Dice;
  private received: number | undefined;
  private connected = false;
  /** True once it has detected that the resourceVersions went back. */
  noticed = false;

  constructor(history: BranchingHistory, namespace: string, subscriber: Subscriber, dice: Dice) {
    this.history = history;
    this.namespace = namespace;
    this.subscriber = subscriber;
    this.dice = dice;
  }

  disconnect(): void {
    this.connected = false;
  }

  step(): void {
    if (this.subscriber.congested) return;
    const roll = this.dice.next();
    if (!this.connected) this.connect();
    else if (roll < 0.1) this.connected = false;
    else if (roll < 0.16) this.list("relist");
    else if (roll < 0.3) this.bookmark();
    else if (roll < 0.38) this.replay();
    else this.receive(1 + this.dice.below(4));
  }

  catchUp(): void {
    while (!this.connected) this.connect();
    this.receive(Number.POSITIVE_INFINITY);
    this.bookmark();
  }

  /**
   * Connects as `Source` does: compares the newest resourceVersion that any subscriber knows with the server's before it resumes.
   */
  connect(): void {
    const { subscriber, history } = this;
    const { resumeFrom, newestKnown } = subscriber;
    const from = this.received ?? (resumeFrom === undefined ? undefined : Number(resumeFrom));
    const newest = [resourceVersionIn(this.received?.toString()), resumeFrom, newestKnown];
    const ahead = newest.some((it) => it !== undefined && isNewer(it, resourceVersion(String(history.now))));
    if (from === undefined) this.list(ahead ? "rv-rewind" : "initial");
    else if (ahead) this.list("rv-rewind");
    else if (from < history.compacted) this.list("relist");
    else {
      this.received = from;
      this.connected = true;
    }
  }

  private list(reason: ListReason): void {
    const { history, subscriber, dice } = this;
    const gapFrom = this.received === undefined ? subscriber.resumeFrom : resourceVersion(String(this.received));
    const rewinds = reason === "rv-rewind" && (gapFrom ?? subscriber.newestKnown) !== undefined;
    const receiver = subscriber.list(gapFrom === undefined && !rewinds ? "initial" : reason, gapFrom);
    const items = [...history.here().values()].filter((it) => it.namespace === this.namespace);
    const half = dice.chance(0.2);
    for (const item of half ? items.slice(0, dice.below(items.length + 1)) : items) {
      receiver.item(changeOf({ ...item, type: "Added" }));
    }
    this.connected = !half;
    if (half) {
      receiver.abort();
      if (subscriber.resumeFrom === undefined) this.received = undefined;
      return;
    }
    if (!rewinds && receiver.provesRewind?.(resourceVersion(String(history.now)))) {
      receiver.abort();
      this.connected = false;
      subscriber.rewound?.();
      this.list("rv-rewind");
      return;
    }
    receiver.end(resourceVersion(String(history.now)));
    this.noticed ||= rewinds;
    this.received = history.now;
  }

  private receive(count: number): void {
    for (const state of this.after(this.received ?? 0).slice(0, count)) {
      this.subscriber.change(changeOf(state));
      this.received = state.rv;
    }
  }

  /** Repeats changes that the watch has passed, as a server may. */
  private replay(): void {
    const passed = this.after(this.history.compacted).filter(({ rv }) => rv <= (this.received ?? 0));
    for (const state of passed.slice(-this.dice.below(5) - 1)) this.subscriber.change(changeOf(state));
  }

  private bookmark(): void {
    const next = this.after(this.received ?? 0)[0];
    this.received = next ? next.rv - 1 : this.history.now;
    this.subscriber.bookmark(resourceVersion(String(this.received)));
  }

  private after(rv: number): State[] {
    return this.history.log.filter((it) => it.namespace === this.namespace && it.rv > rv);
  }
}
