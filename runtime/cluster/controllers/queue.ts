import type { Clock } from "../clock.ts";
import { ClusterError } from "../cluster-error.ts";

/** Delay before a key is retried whose write was refused, for example by a full disk. Milliseconds. */
const retryMs = 1_000;

/** A queue of distinct keys. A key is processed outside the call stack of the write that added it. */
export class WorkQueue {
  private readonly pending = new Set<string>();
  private readonly work: (key: string) => void;
  private readonly clock: Clock;
  private scheduled = false;
  private stopped = false;

  constructor(work: (key: string) => void, clock: Clock) {
    this.work = work;
    this.clock = clock;
  }

  add(key: string): void {
    if (this.stopped) return;
    this.pending.add(key);
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => this.drain());
  }

  /** Processes all pending keys, and those that are added meanwhile. */
  drain(): void {
    this.scheduled = false;
    const refused: string[] = [];
    for (const key of this.pending) {
      if (this.stopped) return;
      this.pending.delete(key);
      if (!this.isDone(key)) refused.push(key);
    }
    if (refused.length === 0) return;
    const again = () => {
      for (const key of refused) this.add(key);
    };
    this.clock.after(retryMs, again, { unref: true });
  }

  /** False if the journal refused a write. No client waits for an answer, so the key is tried again. */
  private isDone(key: string): boolean {
    try {
      this.work(key);
      return true;
    } catch (error) {
      if (error instanceof ClusterError && error.code === "FILE_REFUSED") return false;
      throw error;
    }
  }

  stop(): void {
    this.stopped = true;
    this.pending.clear();
  }
}
