import type { Clock, Timer } from "../base/clock.ts";
import { describeFault } from "../base/errors.ts";
import type { Delivery, DeliveryListener, Runner } from "../engine/delivery/delivery.ts";
import type { Reads } from "./reads.ts";

/** How long a read may lag behind an event before its objects are listed anew, in milliseconds. */
const lagMs = 1_000;
/** How long an event waits for that before its attempt fails, in milliseconds. */
const patienceMs = 30_000;

interface HeldDelivery {
  readonly delivery: Delivery;
  readonly since: number;
  readonly listener: DeliveryListener;
  timers: readonly Timer[];
}

/**
 * Begins an attempt once its function's reads had their first lists. No read may be older than the event, as far as both
 * come from one source. Until the first lists are there it waits without end; for the event it does so 30 s.
 */
export class FreshRunner implements Runner {
  private readonly inner: Runner;
  private readonly reads: Pick<Reads, "of" | "heardBy">;
  private readonly clock: Clock;
  /** Hears of the reads no more, which others may hear of. What waits is not ended by it. */
  readonly close: () => void;
  /** By function. */
  private readonly waiting = new Map<string, Set<HeldDelivery>>();

  constructor(inner: Runner, reads: Pick<Reads, "of" | "heardBy">, clock: Clock) {
    this.inner = inner;
    this.reads = reads;
    this.clock = clock;
    this.close = reads.heardBy((name) => this.look(name));
  }

  give(delivery: Delivery, listener: DeliveryListener): void {
    const since = this.clock.monotonic();
    if (this.isFresh(delivery, since)) {
      this.inner.give(delivery, listener);
      return;
    }
    const waiter: HeldDelivery = { delivery, since, listener, timers: [] };
    const waiters = this.waiting.get(delivery.function) ?? new Set();
    this.waiting.set(delivery.function, waiters.add(waiter));
    const refresh = () => this.reads.of(delivery.function)?.refresh(delivery, since);
    waiter.timers = [this.after(lagMs, refresh), this.giveUpLater(waiter)];
  }

  recall(functionName: string): void {
    const waiters = this.waiting.get(functionName) ?? [];
    this.waiting.delete(functionName);
    for (const waiter of waiters) {
      cancel(waiter);
      waiter.listener.ended({ type: "unbegun" });
    }
    this.inner.recall(functionName);
  }

  private isFresh(delivery: Delivery, since: number): boolean {
    const reads = this.reads.of(delivery.function);
    return !reads || (reads.isReady && reads.ahead(delivery, since) === undefined);
  }

  private look(functionName: string): void {
    for (const waiter of this.waiting.get(functionName) ?? []) {
      const { delivery, since, listener } = waiter;
      if (this.isFresh(delivery, since) && this.leave(waiter)) this.inner.give(delivery, listener);
    }
  }

  /** The attempt fails where a read lags; for a first list it waits on. */
  private giveUp(waiter: HeldDelivery): void {
    const { delivery, listener } = waiter;
    const reads = this.reads.of(delivery.function);
    if (!reads?.isReady) {
      waiter.timers = [this.giveUpLater(waiter)];
      return;
    }
    if (!this.leave(waiter)) return;
    const code = "WF_READS_BEHIND";
    const { trigger, object } = reads.ahead(delivery, waiter.since) ?? delivery;
    const { namespace, name } = object;
    const of = namespace === "" ? name : `${namespace}/${name}`;
    const what = `a read of what trigger ${trigger} takes is older than the event of ${of}`;
    const message = describeFault(code, { what });
    const durationMs = this.clock.monotonic() - waiter.since;
    listener.ended({ type: "failed", error: { name: "ReadsError", message, stack: message, code }, durationMs });
  }

  private giveUpLater(waiter: HeldDelivery): Timer {
    return this.after(patienceMs, () => this.giveUp(waiter));
  }

  private after(delayMs: number, then: () => void): Timer {
    return this.clock.after(delayMs, then, { unref: true });
  }

  private leave(waiter: HeldDelivery): boolean {
    const waiters = this.waiting.get(waiter.delivery.function);
    const left = waiters?.delete(waiter) ?? false;
    if (waiters?.size === 0) this.waiting.delete(waiter.delivery.function);
    cancel(waiter);
    return left;
  }
}

/** It waits no longer: a timer would hold its event's body for half a minute more. */
function cancel({ timers }: HeldDelivery): void {
  for (const timer of timers) timer.cancel();
}
