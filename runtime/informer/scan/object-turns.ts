import type { Clock } from "../../base/clock.ts";

/** Other work waits no longer than this, in milliseconds. */
const turnMs = 10;

/**
 * The event loop is one, so that its turns are shared by all long work. This keeps how much of the present one is
 * spent, and the waiters for the next.
 */
const round = {
  spentMs: 0,
  ends: false,
  waiting: new Set<{ turn(): void }>(),
};

/**
 * Work that may be long, done in pieces: after 10 ms, be they of one or of many, the event loop turns. What comes
 * meanwhile waits behind it, in order. Work that finds time in this turn is done before `run` returns.
 */
export class ObjectTurns {
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

  /** Does pieces while there is time in this turn of the event loop. */
  turn(): void {
    const from = this.clock.monotonic();
    const leftMs = turnMs - round.spentMs;
    let [spentMs, more] = [0, this.steps.length > 0];
    while (more && spentMs < leftMs) {
      more = this.step();
      spentMs = this.clock.monotonic() - from;
    }
    if (spentMs > 0) spend(spentMs);
    if (more) this.wait();
    else this.end();
  }

  private add(step: () => boolean): void {
    if (this.cancelled) return;
    this.steps.push(step);
    if (!this.over) this.turn();
  }

  private wait(): void {
    this.over ??= Promise.withResolvers();
    round.waiting.add(this);
  }

  /** Gives false when nothing is left. */
  private step(): boolean {
    const [step] = this.steps;
    if (step && !step()) this.steps.shift();
    return this.steps.length > 0;
  }

  private end(): void {
    round.waiting.delete(this);
    this.over?.resolve();
    this.over = undefined;
  }
}

function spend(ms: number): void {
  round.spentMs += ms;
  if (round.ends) return;
  round.ends = true;
  setImmediate(next);
}

/** A turn of the event loop is over: those who wait go on, whoever waited longest first. */
function next(): void {
  round.spentMs = 0;
  round.ends = false;
  for (const each of round.waiting) {
    if (round.spentMs >= turnMs) return;
    round.waiting.delete(each);
    each.turn();
  }
}
