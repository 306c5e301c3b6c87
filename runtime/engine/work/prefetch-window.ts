/**
 * An event that comes back within so many milliseconds of being sent was sent ahead to a good end. More than a
 * container is stopped for when it has used up its share of the processor (100 ms). The fewer events travel together,
 * the more each costs.
 */
const quickMs = 250;
/** Events beyond those that may run: a commit, a frame and an entry carry tens of them. With 128 an event costs 5 % more CPU (measured). */
const most = 256;
/**
 * A handler that takes no longer, in milliseconds, is brief. While 256 of them are under way (`rota.ts`), 17,000 a second can still
 * end. That is more than two cores handle where many functions are busy.
 */
const briefMs = 15;
/** Of one that takes longer, so many brief ones count no more. A function is brief once so many count. */
const longWeighs = 8;
const briefFrom = 4;
const mostBrief = 64;

/**
 * How many events of a function are on their way to handlers beyond those that may run at once: as many as come back soon.
 * A handler that takes long gets none, since what waits for it is better off in its lane.
 */
export class PrefetchWindow {
  private allowed = 0;
  private brief = 0;

  get events(): number {
    return this.allowed;
  }

  /** Whether handlers do no more than work for a moment, but for one in nine. */
  get isBrief(): boolean {
    return this.brief >= briefFrom;
  }

  /** An event has come back, so many milliseconds after it was sent. Its handler took so many of them. */
  ended(tookMs: number, handlerMs: number): void {
    this.brief = handlerMs <= briefMs ? Math.min(mostBrief, this.brief + 1) : Math.max(0, this.brief - longWeighs);
    this.allowed = tookMs <= quickMs ? Math.min(most, this.allowed + 1) : Math.max(0, this.allowed - 1);
  }

  /** What ran them has died: it begins anew. */
  interrupted(): void {
    this.allowed = 0;
    this.brief = 0;
  }
}
