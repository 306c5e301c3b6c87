import { Counter, type CounterConfiguration } from "prom-client";

/** What was counted for the label values that lead here, and for those that begin with them. */
interface Count {
  pending: number;
  readonly below: Map<string, Count>;
}

/**
 * A counter for what comes with every event. prom-client makes a string of all labels at each increment (0.5 us and 0.4
 * KB of garbage with four of them). So increments wait here until somebody asks for the counter.
 */
export class Tally<T extends string> {
  private readonly counter: Counter<T>;
  private readonly labelNames: readonly T[];
  private readonly root: Count = { pending: 0, below: new Map() };

  constructor(config: CounterConfiguration<T> & { readonly labelNames: readonly T[] }) {
    this.labelNames = config.labelNames;
    this.counter = new Counter({ ...config, collect: () => this.flush(this.root, []) });
  }

  /** `values`: of all labels, in the order of their names. */
  add(by: number, ...values: readonly string[]): void {
    let count = this.root;
    for (const value of values) {
      let next = count.below.get(value);
      if (!next) {
        next = { pending: 0, below: new Map() };
        count.below.set(value, next);
      }
      count = next;
    }
    count.pending += by;
  }

  private flush(count: Count, values: readonly string[]): void {
    if (count.pending > 0) {
      const labels = Object.fromEntries(this.labelNames.map((name, index) => [name, values[index]]));
      this.counter.inc(labels as Record<T, string>, count.pending);
      count.pending = 0;
    }
    for (const [value, next] of count.below) this.flush(next, [...values, value]);
  }
}
