import { createHash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { Delivery, DeliveryListener, Outcome } from "../../engine/delivery/delivery.ts";
import { type AbortRule, isChange } from "../../manifest/function.ts";

/** Attempts of one version since its canary began here. */
interface VersionCounts {
  /** Ended attempts; interrupted ones do not count. */
  readonly runs: number;
  readonly failures: number;
  /** Durations in milliseconds, at most 10 % too high. `undefined` without an attempt. */
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

/** State of a function's canary in this process. */
export interface CanaryState {
  readonly id: string;
  /** Percentage of the keys. */
  readonly share: number;
  /** When it began to count, in epoch milliseconds. */
  readonly since: number;
  /** Why the current code gets all keys; `undefined`: the canary gets its share. */
  readonly aborted: string | undefined;
  readonly current: VersionCounts;
  readonly canary: VersionCounts;
}

/** Code that runs deliveries. The sandbox's functions implement it. */
interface DividedVersion {
  give(delivery: Delivery, listener: DeliveryListener): void;
  recall(): void;
  /** Milliseconds until it may run again after it ended executors; else 0. */
  readonly parkedMs: number;
}

interface CanaryRouteParts {
  readonly id: string;
  readonly share: number;
  readonly salt: string;
  readonly rule: AbortRule;
  /** Most attempts of both versions together. */
  readonly concurrency: number;
  readonly clock: Pick<Clock, "now">;
  /** Called once, when the canary is aborted by the rule. */
  readonly aborted: (reason: string) => void;
}

/**
 * Returns whether a key is in the canary's share: by its hash, so that it stays there over restarts and in every replica, and if the
 * share grows.
 * @param share percentage
 */
export const isInShare = (salt: string, key: string, share: number): boolean =>
  createHash("sha256").update(`${salt}\n${key}`).digest().readUInt32BE(0) < (share / 100) * 2 ** 32;

/** Returns the key of a delivery: the object's, or the key's that is reconciled. Each run of a schedule is a separate key. */
const canaryKeyOf = ({ type, id, object: { namespace, name } }: Pick<Delivery, "type" | "id" | "object">): string =>
  isChange(type) ? `${namespace}/${name}` : id;

/**
 * Divides a function's attempts between two versions of its code, by key, and compares them. It has the attempts of one queue,
 * which has at most one of a key, so order holds whichever version runs. Both together run at most `concurrency` attempts.
 */
export class CanaryRoute {
  private readonly parts: CanaryRouteParts;
  private readonly since: number;
  private readonly counts = { current: new VersionCounter(), canary: new VersionCounter() };
  private waiting: { readonly delivery: Delivery; readonly listener: DeliveryListener }[] = [];
  /** Attempts of both versions, and those of the canary among them. */
  private running = 0;
  private inCanary = 0;
  private versions: { readonly current: DividedVersion; readonly canary: DividedVersion } | undefined;
  private reason: string | undefined;
  /** Called once the canary has no attempt any more. */
  private left: (() => void) | undefined;

  constructor(parts: CanaryRouteParts) {
    this.parts = parts;
    this.since = parts.clock.now();
  }

  get state(): CanaryState {
    const { id, share } = this.parts;
    const { current, canary } = this.counts;
    return { id, share, since: this.since, aborted: this.reason, current: current.counts, canary: canary.counts };
  }

  /** Sets the versions. From then on, it has the function's attempts. */
  begin(current: DividedVersion, canary: DividedVersion): void {
    this.versions = { current, canary };
  }

  /** Ends the canary. Resolves once it has no attempt any more; what waits is then the current code's. */
  end(): Promise<void> {
    this.abort("it ended");
    return new Promise((resolve) => {
      this.left = resolve;
      this.leave();
    });
  }

  give(delivery: Delivery, listener: DeliveryListener): void {
    this.waiting.push({ delivery, listener });
    this.proceed();
  }

  /** Returns what has not begun to the engine. */
  recall(): void {
    const left = this.waiting.splice(0);
    queueMicrotask(() => {
      for (const { listener } of left) listener.ended({ type: "unbegun" });
    });
    this.versions?.canary.recall();
  }

  /** Returns all keys to the current code, until another canary begins. */
  abort(reason: string): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    // Attempts that have not begun there run on the current code.
    this.versions?.canary.recall();
  }

  private proceed(): void {
    const { versions } = this;
    while (versions && this.running < this.parts.concurrency) {
      const next = this.waiting.shift();
      if (!next) return;
      this.run(next.delivery, next.listener, versions);
    }
  }

  private run(
    delivery: Delivery,
    listener: DeliveryListener,
    { current, canary }: NonNullable<typeof this.versions>,
  ): void {
    const { salt, share } = this.parts;
    const isCanary = this.reason === undefined && isInShare(salt, canaryKeyOf(delivery), share);
    const one = isCanary ? 1 : 0;
    this.running++;
    this.inCanary += one;
    const ended = (outcome: Outcome) => {
      this.running--;
      this.inCanary -= one;
      if ("durationMs" in outcome) this.counts[isCanary ? "canary" : "current"].add(outcome);
      if (isCanary) this.judge(canary);
      listener.ended(outcome);
      this.leave();
      this.proceed();
    };
    (isCanary ? canary : current).give(delivery, { begins: () => listener.begins(), ended });
  }

  private leave(): void {
    if (!this.left || this.inCanary > 0) return;
    for (const { delivery, listener } of this.waiting.splice(0)) this.versions?.current.give(delivery, listener);
    this.left();
    this.left = undefined;
  }

  private judge({ parkedMs }: DividedVersion): void {
    const { failureRate, minRuns } = this.parts.rule;
    const { current, canary } = this.counts;
    const isParked = parkedMs > 0;
    const isWorse = canary.runs >= minRuns && canary.rate > failureRate && canary.rate > current.rate;
    if (this.reason !== undefined || !(isParked || isWorse)) return;
    const reason = isParked
      ? "its code ended executors"
      : `${canary.failures} of its ${canary.runs} attempts failed, of the current code's ${current.failures} of ${current.runs}`;
    this.abort(reason);
    this.parts.aborted(reason);
  }
}

/** Ratio of a bucket's bounds. */
const step = 1.1;
/** Upper bound of the first bucket, in milliseconds, and the number of buckets: the last ends at 20 hours. */
const leastMs = 0.1;
const buckets = 215;

class VersionCounter {
  runs = 0;
  failures = 0;
  private readonly durations = new Float64Array(buckets);

  add(outcome: Extract<Outcome, { readonly durationMs: number }>): void {
    this.runs++;
    if (outcome.type !== "ok") this.failures++;
    const bucket = Math.ceil(Math.log(Math.max(outcome.durationMs, leastMs) / leastMs) / Math.log(step));
    const at = Math.min(bucket, buckets - 1);
    this.durations[at] = (this.durations[at] ?? 0) + 1;
  }

  get rate(): number {
    return this.runs === 0 ? 0 : this.failures / this.runs;
  }

  get counts(): VersionCounts {
    const { runs, failures } = this;
    return { runs, failures, p50Ms: this.quantile(0.5), p99Ms: this.quantile(0.99) };
  }

  private quantile(part: number): number | undefined {
    let below = 0;
    const at = this.durations.findIndex((count) => {
      below += count;
      return count > 0 && below >= part * this.runs;
    });
    return at < 0 ? undefined : Number((leastMs * step ** at).toPrecision(3));
  }
}
