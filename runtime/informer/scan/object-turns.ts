import type { Clock } from "../../base/clock.ts";

/** Longest time slice before other work gets its turn, in milliseconds. */
const turnMs = 10;

/**
 * State shared by all long work, because there is one event loop: the time spent in the current turn, and the work that waits for
 * the next.
 */
const round = {
  spentMs: 0,
  ends: false,
  waiting: new Set<{ turn(): void }>(),
};

/**
 * Runs long work in pieces and yields to the event loop after 10 ms, measured over all instances together. Work that arrives
 * meanwhile is queued, in order. Work that fits into the current turn is finished before `run` returns.
 */
export class ObjectTurns {
  private readonly clock: Clock;
  /** Queued work. Each call does one piece and returns whether there is more. */
  private readonly steps: (() => boolean)[] = [];
  private over: PromiseWithResolvers<void> | undefined;
  private cancelled = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Promise that resolves when all work is done; `undefined` while idle. */
  get busy(): Promise<void> | undefined {
    return this.over?.promise;
  }

  /** Queues `work`, which runs from one `yield` to the next. */
  run(work: Iterator<void>): void {
    this.add(() => !work.next().done);
  }

  /** Queues a single piece. */
  queue(piece: () => void): void {
    this.add(() => {
      piece();
      return false;
    });
  }

  /** Does all remaining work at once. */
  finish(): void {
    while (this.step());
    this.end();
  }

  /** Discards all remaining work. */
  cancel(): void {
    this.cancelled = true;
    this.steps.length = 0;
    this.end();
  }

  /** Does pieces while there is time left in this turn of the event loop. */
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

  /** Does one piece. Returns false when no work is left. */
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

/** Starts a new turn of the event loop: waiting work continues, in the order in which it began to wait. */
function next(): void {
  round.spentMs = 0;
  round.ends = false;
  for (const each of round.waiting) {
    if (round.spentMs >= turnMs) return;
    round.waiting.delete(each);
    each.turn();
  }
}
