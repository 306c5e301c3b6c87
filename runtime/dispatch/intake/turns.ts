import type { Clock } from "../../clock.ts";

/** Other work waits no longer than this, in milliseconds. */
const turnMs = 10;

/**
 * Work that may be long, done in pieces: after each 10 ms the event loop turns. What comes meanwhile waits behind it, in
 * order. Work that takes less is done before `run` returns.
 */
export class Turns {
  private readonly clock: Clock;
  /** Each does a piece, and says whether there is more of it. */
  private readonly steps: (() => boolean)[] = [];
  private over: PromiseWithResolvers<void> | undefined;
  private cancelled = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** A promise until all of it is done; undefined where nothing is under way. */
  get busy(): Promise<void> | undefined {
    return this.over?.promise;
  }

  /** Runs `work` from one `yield` to the next, behind what is under way. */
  run(work: Iterator<void>): void {
    this.add(() => !work.next().done);
  }

  /** Runs one piece, behind what is under way. */
  queue(piece: () => void): void {
    this.add(() => {
      piece();
      return false;
    });
  }

  /** Does what is left at once. */
  finish(): void {
    while (this.step());
    this.end();
  }

  /** What is left is not done. */
  cancel(): void {
    this.cancelled = true;
    this.steps.length = 0;
    this.end();
  }

  private add(step: () => boolean): void {
    if (this.cancelled) return;
    this.steps.push(step);
    if (!this.over) this.turn();
  }

  private turn(): void {
    const until = this.clock.monotonic() + turnMs;
    while (this.step()) {
      if (this.clock.monotonic() < until) continue;
      this.over ??= Promise.withResolvers();
      setImmediate(() => this.turn());
      return;
    }
    this.end();
  }

  /** Gives false when nothing is left. */
  private step(): boolean {
    const [step] = this.steps;
    if (step && !step()) this.steps.shift();
    return this.steps.length > 0;
  }

  private end(): void {
    this.over?.resolve();
    this.over = undefined;
  }
}
