import type { Random } from "../clock.ts";

/** client-go's own curve for its reflectors (`reflector.go`); kube-rs has the same. Milliseconds. */
const firstMs = 800;
const capMs = 30_000;
const healthyMs = 120_000;

/**
 * How long to wait after failures: 0.8 s, doubled each time up to 30 s, plus 0 to 100 % jitter, so that sources which
 * failed together do not return together. The first four attempts fit into about ten seconds on average, well inside
 * the 75 s of history that an API server tries to keep. It never gives up.
 */
export class Backoff {
  private readonly random: Random;
  private failures = 0;
  /** How long sessions have lasted since the last failure. */
  private healthyForMs = 0;

  constructor(random: Random) {
    this.random = random;
  }

  /** Failures in a row. */
  get attempt(): number {
    return this.failures;
  }

  /** Counts one failure. @returns milliseconds to wait. */
  next(): number {
    const base = Math.min(firstMs * 2 ** this.failures, capMs);
    this.failures++;
    this.healthyForMs = 0;
    return base * (1 + this.random());
  }

  /** A session lasted `ms`: two minutes without a failure, in however many sessions, and the past is forgotten. */
  worked(ms: number): void {
    this.healthyForMs += ms;
    if (this.healthyForMs >= healthyMs) this.failures = 0;
  }
}
