import { setImmediate as nextTurn } from "node:timers/promises";
import { abortable } from "../../kube/abortable.ts";

/** Connections opened per turn of the event loop: opening one takes about a millisecond, and its TLS handshake as long again. */
const perTurn = 8;

/** Limits how many waiters proceed in each turn of the event loop, so that a thousand at once do not block it. */
export class Semaphore {
  private readonly waiting: (() => void)[] = [];
  private passed = 0;
  private turning = false;

  /** Waits for a place in this or a later turn. Rejects with the signal's reason. */
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
