interface PauseGateParts {
  /** Makes the runner return the attempts that have not begun. */
  readonly recall: () => void;
  /** Makes waiting retries run at once. */
  readonly retryAll: () => void;
  /** Begins as many attempts as may begin. */
  readonly pump: () => void;
}

/**
 * Decides whether attempts may begin, and counts those in progress. Shuts for new code, for a reason that affects all events, and
 * for good.
 */
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

  /** Whether as many attempts are in progress as may be. */
  isFull(limit: number): boolean {
    return this.underWay >= limit;
  }

  /** Counts an attempt that is on its way to the runner. */
  enter(): void {
    this.underWay++;
  }

  /** Uncounts an attempt whose result has been acted on. The next one may begin. */
  leave(): void {
    this.underWay--;
    if (this.idle.length > 0) this.resolveIdle();
    this.parts.pump();
  }

  /** Lets no attempt begin until `resume`. Resolves when no attempt is in progress. */
  pause(): Promise<void> {
    this.paused = true;
    this.parts.recall();
    return new Promise((resolve) => {
      this.idle.push(resolve);
      this.resolveIdle();
    });
  }

  /** Ends a pause. */
  resume(): void {
    if (this.stopped) return;
    this.paused = false;
    this.parts.pump();
  }

  /** Ends a pause with new code. Waiting retries are attempted at once. */
  renew(): void {
    if (this.stopped) return;
    this.parts.retryAll();
    this.resume();
  }

  /**
   * Lets no attempt begin until `release`, because it would fail for a reason that affects all events. Attempts in progress go
   * on.
   */
  hold(): void {
    this.held = true;
    this.parts.recall();
  }

  /** Ends a hold. Waiting retries are attempted at once. */
  release(): void {
    if (!this.held || this.stopped) return;
    this.held = false;
    this.parts.retryAll();
    this.parts.pump();
  }

  /** Lets no attempt begin any more. Resolves when no attempt is in progress. */
  stop(): Promise<void> {
    this.stopped = true;
    return this.pause();
  }

  private resolveIdle(): void {
    if (this.underWay > 0) return;
    for (const resolve of this.idle.splice(0)) resolve();
  }
}
