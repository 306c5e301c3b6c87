import type { Clock } from "../../base/clock.ts";

interface Entry<T> {
  readonly answer: Promise<T>;
  readonly until: number;
  /** Whether the answer is there, and is worth more than those that anybody can bring about. */
  isGood: boolean;
}

/**
 * Keeps answers for a time, at most so many. Questions that are asked at the same time share one answer. Failures are not kept. If
 * there is no room, the oldest answer that is not good goes first: invented questions displace no good answer.
 */
export class AnswerCache<T> {
  private readonly clock: Pick<Clock, "monotonic">;
  private readonly most: number;
  private readonly keptMs: number;
  private readonly isGood: (answer: T) => boolean;
  private readonly answers = new Map<string, Entry<T>>();

  /**
   * @param keptMs how long an answer is kept, in milliseconds
   * @param isGood which answers stay longest if there is no room
   */
  constructor(clock: Pick<Clock, "monotonic">, most: number, keptMs: number, isGood: (answer: T) => boolean) {
    this.clock = clock;
    this.most = most;
    this.keptMs = keptMs;
    this.isGood = isGood;
  }

  /** Whether the last answer was good, though it may be too old. */
  wasGood(key: string): boolean {
    return this.answers.get(key)?.isGood === true;
  }

  /** Returns the kept answer, or asks for one. */
  get(key: string, ask: () => Promise<T>): Promise<T> {
    const now = this.clock.monotonic();
    const kept = this.answers.get(key);
    if (kept && kept.until > now) return kept.answer;
    this.answers.delete(key);
    if (this.answers.size >= this.most) this.answers.delete(this.worst() ?? "");
    const entry: Entry<T> = { answer: ask(), until: now + this.keptMs, isGood: false };
    this.answers.set(key, entry);
    entry.answer.then(
      (answer) => {
        entry.isGood = this.isGood(answer);
      },
      () => {
        if (this.answers.get(key) === entry) this.answers.delete(key);
      },
    );
    return entry.answer;
  }

  private worst(): string | undefined {
    for (const [key, { isGood }] of this.answers) if (!isGood) return key;
    const [oldest] = this.answers.keys();
    return oldest;
  }
}
