import type { Clock, Random } from "../../base/clock.ts";

/** Range of an exponential backoff, in milliseconds. */
interface Curve {
  readonly firstMs: number;
  readonly capMs: number;
}

/**
 * client-go's own curve for its reflectors (`reflector.go`); kube-rs has the same. The first four attempts fit into about
 * ten seconds on average, well inside the 75 s of history that an API server tries to keep.
 */
const failureCurve: Curve = { firstMs: 800, capMs: 30_000 };
/**
 * Backoff after 403: an API server that has just started answers 403 until it has read its own roles, which takes a second or
 * two.
 */
export const forbiddenCurve: Curve = { firstMs: 1000, capMs: 30_000 };
/** Time without a failure after which the backoff starts over, in milliseconds. */
const healthyMs = 120_000;

/**
 * Exponential backoff: the curve's first wait, doubled each time up to its cap, plus 0 to 100 % jitter, so that sources which
 * failed together do not return together. It never gives up.
 */
export class Backoff {
  private readonly clock: Clock;
  private readonly random: Random;
  private readonly curve: Curve;
  private failures = 0;
  /** End of the last wait. */
  private triedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: Random, curve: Curve = failureCurve) {
    this.clock = clock;
    this.random = random;
    this.curve = curve;
  }

  /** Consecutive failures. */
  get attempt(): number {
    return this.clock.monotonic() - this.triedAt >= healthyMs ? 0 : this.failures;
  }

  /** Counts one failure. @returns milliseconds to wait. */
  next(): number {
    const before = this.attempt;
    const base = Math.min(this.curve.firstMs * 2 ** before, this.curve.capMs);
    this.failures = before + 1;
    const delayMs = base * (1 + this.random());
    this.triedAt = this.clock.monotonic() + delayMs;
    return delayMs;
  }

  /** Resets the backoff after a success. */
  reset(): void {
    this.failures = 0;
  }
}
