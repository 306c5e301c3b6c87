import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import type { Subscriber } from "../../../runtime/informer/fanout/subscriber.ts";
import type { Dice } from "../random.ts";
import { type Chosen, type Cluster, changeOf, type Form, selects, watched } from "./cluster.ts";

/** The part of the cluster that a source reads: a trigger's objects in one namespace, "" for all. */
export interface Read {
  readonly cluster: Cluster;
  readonly trigger: Chosen & Form;
  readonly namespace: string;
}

/**
 * A trigger's list and watch as a subscriber sees it, with the trigger's selectors and form: it ends, replays, expires and
 * relists.
 */
export class SelectedSource {
  private readonly read: Read;
  private readonly subscriber: Subscriber;
  private readonly listed: (rv: number) => void;
  /** The revision up to which it has received everything; `undefined` before it has connected. */
  private received: number | undefined;
  private connected = false;
  /** True while the subscriber is suspended for lack of room. */
  private left = false;

  /** @param listed called with the resourceVersion of each complete list */
  constructor(read: Read, subscriber: Subscriber, listed: (rv: number) => void) {
    this.read = read;
    this.subscriber = subscriber;
    this.listed = listed;
    subscriber.placed?.({ stepAside: (room) => this.stepAside(room) });
  }

  private stepAside(room: () => Promise<void>): void {
    this.left = true;
    this.received = undefined;
    this.connected = false;
    void room().then(() => {
      this.left = false;
    });
  }

  /** Makes a random event happen to the watch. */
  step(dice: Dice): void {
    if (this.left || this.subscriber.congested) return;
    const roll = dice.next();
    if (!this.connected) this.connect(dice);
    else if (roll < 0.1) this.connected = false;
    else if (roll < 0.16) this.list("relist", dice);
    else if (roll < 0.3) this.bookmark();
    else if (roll < 0.38) this.replay(dice);
    else this.receive(1 + dice.below(4));
  }

  /** Receives everything there is. Returns whether the subscriber accepted it. */
  catchUp(dice: Dice): boolean {
    for (let tries = 0; tries < 100 && !this.connected && !this.left; tries++) this.connect(dice);
    if (!this.left) this.receive(Number.POSITIVE_INFINITY);
    if (!this.left) this.bookmark();
    return this.connected && !this.left;
  }

  private connect(dice: Dice): void {
    const resume = this.subscriber.resumeFrom;
    const from = this.received ?? (resume === undefined ? undefined : Number(resume));
    if (from === undefined) this.list("initial", dice);
    else if (from < this.read.cluster.compacted) this.list("relist", dice);
    else {
      this.received = from;
      this.connected = true;
    }
  }

  private list(reason: "initial" | "relist", dice: Dice): void {
    const { cluster, trigger, namespace } = this.read;
    const { subscriber } = this;
    const gapFrom = this.received === undefined ? undefined : resourceVersion(String(this.received));
    const receiver = subscriber.list(reason, gapFrom);
    const all = [...cluster.here(trigger.kind).values()];
    const items = all.filter((it) => (namespace === "" || it.namespace === namespace) && selects(trigger, it));
    const breaksOff = dice.chance(0.1);
    for (const item of breaksOff ? items.slice(0, dice.below(items.length + 1)) : items)
      receiver.item(changeOf(item, "Added", trigger));
    this.connected = false;
    if (breaksOff || this.left) {
      receiver.abort();
      // The subscriber may have received changes newer than the history that a stream would resume from.
      if (subscriber.resumeFrom === undefined) this.received = undefined;
      return;
    }
    this.listed(cluster.now);
    if (receiver.end(resourceVersion(String(cluster.now))) === "held" || this.left) return;
    this.received = cluster.now;
    this.connected = true;
  }

  private receive(count: number): void {
    const { cluster, trigger, namespace } = this.read;
    let left = count;
    for (const [type, state] of watched(cluster, trigger, namespace, this.received ?? 0)) {
      if (left-- <= 0) return;
      this.subscriber.change(changeOf(state, type, trigger));
      if (this.left) return;
      this.received = state.rv;
    }
  }

  /** Repeats changes that the watch has passed, as a server may. */
  private replay(dice: Dice): void {
    const { cluster, trigger, namespace } = this.read;
    const sent = [...watched(cluster, trigger, namespace, cluster.compacted)];
    const passed = sent.filter(([, { rv }]) => rv <= (this.received ?? 0));
    for (const [type, state] of passed.slice(-dice.below(4) - 1)) {
      if (this.left) return;
      this.subscriber.change(changeOf(state, type, trigger));
    }
  }

  private bookmark(): void {
    const { cluster, trigger, namespace } = this.read;
    const [next] = watched(cluster, trigger, namespace, this.received ?? 0);
    this.received = next ? next[1].rv - 1 : cluster.now;
    this.subscriber.bookmark(resourceVersion(String(this.received)));
  }
}
