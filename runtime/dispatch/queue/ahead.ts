/**
 * An event that comes back within so many milliseconds of being sent was sent ahead to a good end. More than a
 * container is stopped for when it has used up its share of the processor (100 ms). The fewer events travel together,
 * the more each costs.
 */
const quickMs = 250;
/** Events beyond those that may run: a commit, a frame and an entry carry tens of them. With 128 an event costs 5 % more CPU (measured). */
const most = 256;

/**
 * How many events of a function are on their way to handlers beyond those that may run at once: as many as come back soon.
 * A handler that takes long gets none, since what waits for it is better off in its lane.
 */
export class Ahead {
  private allowed = 0;

  get events(): number {
    return this.allowed;
  }

  /** An event has come back, so many milliseconds after it was sent. */
  ended(tookMs: number): void {
    this.allowed = tookMs <= quickMs ? Math.min(most, this.allowed + 1) : Math.max(0, this.allowed - 1);
  }

  /** What ran them has died: it begins anew. */
  interrupted(): void {
    this.allowed = 0;
  }
}
