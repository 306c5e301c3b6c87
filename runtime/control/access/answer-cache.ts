import type { Clock } from "../../base/clock.ts";

/** Keeps answers for a time, at most so many. Questions that are asked at the same time share one answer. Failures are not kept. */
export class AnswerCache<T> {
  private readonly clock: Pick<Clock, "monotonic">;
  private readonly most: number;
  private readonly keptMs: number;
  private readonly answers = new Map<string, { readonly answer: Promise<T>; readonly until: number }>();

  /** @param keptMs how long an answer is kept, in milliseconds */
  constructor(clock: Pick<Clock, "monotonic">, most: number, keptMs: number) {
    this.clock = clock;
    this.most = most;
    this.keptMs = keptMs;
  }

  /** Returns the kept answer, or asks for one. */
  get(key: string, ask: () => Promise<T>): Promise<T> {
    const now = this.clock.monotonic();
    const kept = this.answers.get(key);
    if (kept && kept.until > now) return kept.answer;
    this.answers.delete(key);
    const [oldest] = this.answers.keys();
    if (this.answers.size >= this.most && oldest !== undefined) this.answers.delete(oldest);
    const entry = { answer: ask(), until: now + this.keptMs };
    this.answers.set(key, entry);
    entry.answer.catch(() => {
      if (this.answers.get(key) === entry) this.answers.delete(key);
    });
    return entry.answer;
  }
}
