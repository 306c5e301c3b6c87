interface PauseGateParts {
  /** Has the runner give back what has not begun. */
  readonly recall: () => void;
  /** Has what waits for a retry be tried at once. */
  readonly retryAll: () => void;
  /** Begins what may begin. */
  readonly pump: () => void;
}

/** Whether attempts may begin, and how many go on. It shuts for new code, for a reason that is no event's, and for good. */
export class PauseGate {
  private readonly parts: PauseGateParts;
  private underWay = 0;
  private paused = false;
  private held = false;
  private stopped = false;
  private idle: (() => void)[] = [];

  constructor(parts: PauseGateParts) {
    this.parts = parts;
  }

  /** Whether no attempt may begin. */
  readonly isShut = (): boolean => this.paused || this.held;

  /** Whether it is shut for good. */
  get isStopped(): boolean {
    return this.stopped;
  }

  /** Whether as many attempts go on as may. */
  isFull(limit: number): boolean {
    return this.underWay >= limit;
  }

  /** An attempt is on its way to the runner. */
  enter(): void {
    this.underWay++;
  }

  /** An attempt has ended, and what becomes of it is settled. The next one may begin. */
  leave(): void {
    this.underWay--;
    this.tellIdle();
    this.parts.pump();
  }

  /** No attempt begins until `resume`. Resolves when none goes on. */
  pause(): Promise<void> {
    this.paused = true;
    this.parts.recall();
    return new Promise((resolve) => {
      this.idle.push(resolve);
      this.tellIdle();
    });
  }

  /** Goes on as it was. */
  resume(): void {
    if (this.stopped) return;
    this.paused = false;
    this.parts.pump();
  }

  /** Goes on with new code: what waits for a retry is tried at once. */
  renew(): void {
    if (this.stopped) return;
    this.parts.retryAll();
    this.resume();
  }

  /** Until `release` no attempt begins: it would fail for a reason that is no event's. Those that began go on. */
  hold(): void {
    this.held = true;
    this.parts.recall();
  }

  /** What held it is over: what waits for a retry is tried at once. */
  release(): void {
    if (!this.held || this.stopped) return;
    this.held = false;
    this.parts.retryAll();
    this.parts.pump();
  }

  /** Nothing begins any more. Resolves when nothing goes on. */
  stop(): Promise<void> {
    this.stopped = true;
    return this.pause();
  }

  private tellIdle(): void {
    if (this.underWay > 0) return;
    for (const resolve of this.idle.splice(0)) resolve();
  }
}
