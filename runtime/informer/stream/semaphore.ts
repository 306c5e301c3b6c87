import { setImmediate as nextTurn } from "node:timers/promises";
import { abortable } from "../../kube/abortable.ts";

/** Opening a connection costs about a millisecond, and its TLS handshake as much again: other work waits no longer for so many. */
const perTurn = 8;

/** Lets a few begin in each turn of the event loop, so that a thousand that come at once do not hold it up. */
export class Semaphore {
  private readonly waiting: (() => void)[] = [];
  private passed = 0;
  private turning = false;

  /** Waits for a place in this turn, or a later one. Rejects with the signal's reason. */
  pass(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.passed < perTurn && this.waiting.length === 0) {
      this.passed++;
      resolve();
    } else this.waiting.push(resolve);
    if (!this.turning) void this.turn();
    return abortable(promise, signal);
  }

  private async turn(): Promise<void> {
    this.turning = true;
    while (this.passed > 0) {
      await nextTurn();
      const next = this.waiting.splice(0, perTurn);
      this.passed = next.length;
      for (const admit of next) admit();
    }
    this.turning = false;
  }
}
