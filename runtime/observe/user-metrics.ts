import { Counter, Histogram, type Registry } from "prom-client";

/** A function may have at most this many series: the usual advice for one exporter's metric is tens, and labels multiply. */
const seriesLimit = 200;

const validName = /^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/;

interface Series {
  readonly metric: Counter | Histogram;
  readonly labelNames: string;
}

/**
 * What handlers count by `ctx.metrics`: `watchfire_user_<name>` with the label `function` and the handler's own.
 * A function cannot touch another's series, nor have more than {@link seriesLimit} of its own.
 */
export class UserMetrics {
  private readonly registry: Registry;
  private readonly metrics = new Map<string, Series>();
  private readonly seen = new Map<string, Set<string>>();

  constructor(registry: Registry) {
    this.registry = registry;
  }

  /**
   * Adds one sample.
   * @returns undefined, or why it was refused, in words for the function's log
   */
  record(
    functionName: string,
    type: "increment" | "observe",
    name: string,
    value: number,
    labels: Readonly<Record<string, string>>,
  ): string | undefined {
    if (!validName.test(name)) return `the metric's name ${JSON.stringify(name)} is not [a-zA-Z_][a-zA-Z0-9_]*`;
    const labelNames = Object.keys(labels).sort();
    const bad = labelNames.find((label) => !validName.test(label) || label === "function" || label === "le");
    if (bad !== undefined) return `the label ${JSON.stringify(bad)} cannot be used`;
    if (!Number.isFinite(value) || (type === "increment" && value < 0)) return `the value ${value} cannot be used`;
    const series = this.series(type, name, labelNames);
    if (typeof series === "string") return series;
    const key = `${type} ${name} ${labelNames.map((label) => `${label}=${labels[label]}`).join(",")}`;
    const seen = this.seen.get(functionName) ?? new Set<string>();
    this.seen.set(functionName, seen);
    if (!seen.has(key)) {
      if (seen.size >= seriesLimit) return `the function has ${seriesLimit} series already`;
      seen.add(key);
    }
    const all = { function: functionName, ...labels };
    if (series instanceof Counter) series.inc(all, value);
    else series.observe(all, value);
    return undefined;
  }

  private series(
    type: "increment" | "observe",
    name: string,
    labelNames: readonly string[],
  ): Counter | Histogram | string {
    const full = `watchfire_user_${name}`;
    const names = labelNames.join(",");
    const known = this.metrics.get(full);
    if (known) {
      if (known.labelNames !== names) return `the metric ${name} was first used with the labels [${known.labelNames}]`;
      if ((type === "increment") !== known.metric instanceof Counter) return `the metric ${name} is of the other type`;
      return known.metric;
    }
    const options = {
      name: full,
      help: "Recorded by a handler.",
      labelNames: ["function", ...labelNames],
      registers: [this.registry],
    };
    const metric = type === "increment" ? new Counter(options) : new Histogram(options);
    this.metrics.set(full, { metric, labelNames: names });
    return metric;
  }
}
