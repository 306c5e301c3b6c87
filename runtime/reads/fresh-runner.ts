import type { Clock, Timer } from "../base/clock.ts";
import { describeFault } from "../base/errors.ts";
import type { Delivery, DeliveryListener, Runner } from "../engine/delivery/delivery.ts";
import type { Reads } from "./reads.ts";

/** Milliseconds that a read may lag behind an event before its objects are listed again. */
const lagMs = 1_000;
/** Milliseconds that an event waits for that before its attempt fails. */
const patienceMs = 30_000;

interface HeldDelivery {
  readonly delivery: Delivery;
  readonly since: number;
  readonly listener: DeliveryListener;
  timers: readonly Timer[];
}

/**
 * Begins an attempt once its function's reads have completed their first lists and are not older than the event, as far as both
 * come from one source. It waits for the first lists without a limit, and for the event 30 s.
 */
export class FreshRunner implements Runner {
  private readonly inner: Runner;
  private readonly reads: Pick<Reads, "of" | "heardBy">;
  private readonly clock: Clock;
  /** Unsubscribes from the reads, which others may still use. Waiting attempts are not ended. */
  readonly close: () => void;
  /** Keyed by function. */
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

  /** Fails the attempt if a read lags. While a first list is missing, it keeps waiting. */
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

/** Cancels its timers, which would keep its event's body alive for another half a minute. */
function cancel({ timers }: HeldDelivery): void {
  for (const timer of timers) timer.cancel();
}
