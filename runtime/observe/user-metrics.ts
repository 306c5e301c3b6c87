import { shorten } from "../base/wording.ts";
import { Counter } from "./counter.ts";
import { Histogram } from "./histogram.ts";
import type { Family, MetricRegistry } from "./metric-registry.ts";

/** Maximum number of series of one function. The usual advice for one exporter's metric is tens, and labels multiply. */
const seriesLimit = 200;
/** Maximum characters of all labels of one series, names and values. 200 such histograms are 2 MB of text. */
const labelsLimit = 512;
/** Maximum number of metric names per function for which a refusal is logged, because a name may differ for every event. */
const reportedLimit = 20;

/** Bucket bounds of handlers' histograms: Prometheus' default, 5 ms to 10 s if seconds are observed. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const validName = /^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/;
/** Endings that a histogram's name may not have: a counter's, and those of a histogram's own series. */
const reservedEnding = /_(?:total|bucket|count|sum)$/;

type MetricOperation = "increment" | "observe";

/** One metric of one function. */
interface UserMetric {
  readonly metric: Counter | Histogram;
  readonly labelNames: string;
}

interface UserSeries {
  readonly metrics: Map<string, UserMetric>;
  readonly series: Set<string>;
  /** Names of metrics whose refusal was logged. */
  readonly reported: Set<string>;
}

/**
 * The metrics that handlers record by `ctx.metrics`: `watchfire_user_<name>_total` or the histogram `watchfire_user_<name>`, with
 * the label `function` and the handler's own. A function cannot affect another's series or names: each has its own labels for a
 * name, and the endings keep the types apart. It can have at most {@link seriesLimit} series.
 */
export class UserMetrics {
  private readonly functions = new Map<string, UserSeries>();
  /** Metric families by full name, each with the metrics of all functions that use it. */
  private readonly families = new Map<string, OwnFamily>();

  constructor(page: Pick<MetricRegistry, "addAll">) {
    page.addAll(() => this.families.values());
  }

  /**
   * Adds one sample.
   * @returns `undefined`, or the reason why it was refused, for the function's log
   */
  record(
    functionName: string,
    type: MetricOperation,
    name: string,
    value: number,
    labels: Readonly<Record<string, string>>,
  ): string | undefined {
    const labelNames = Object.keys(labels).sort();
    const fault = faultOf(type, name, value, labelNames, labels);
    if (fault !== undefined) return fault;
    const own = this.own(functionName);
    const full = fullName(type, name);
    const names = labelNames.join(",");
    const known = own.metrics.get(full);
    if (known && known.labelNames !== names) {
      return `the metric ${name} was first used with the labels [${known.labelNames}]`;
    }
    const key = JSON.stringify([full, ...labelNames.map((label) => labels[label])]);
    if (!own.series.has(key)) {
      if (own.series.size >= seriesLimit) return `the function has ${seriesLimit} series already`;
      own.series.add(key);
    }
    const metric = known?.metric ?? this.add(functionName, own, type, full, labelNames);
    const values = labelNames.map((label) => labels[label] ?? "");
    if (metric instanceof Counter) metric.add(value, functionName, ...values);
    else metric.observe(value, functionName, ...values);
    return undefined;
  }

  /** Whether a refusal should be logged: the first for each name, for a limited number of names. */
  isNews(functionName: string, name: string): boolean {
    const { reported } = this.own(functionName);
    if (reported.has(name) || reported.size >= reportedLimit) return false;
    reported.add(name);
    return true;
  }

  /** Removes an unloaded function and its series. */
  forget(functionName: string): void {
    const gone = this.functions.get(functionName);
    this.functions.delete(functionName);
    for (const full of gone?.metrics.keys() ?? []) {
      const members = this.families.get(full)?.members;
      members?.delete(functionName);
      if (members?.size === 0) this.families.delete(full);
    }
  }

  private own(functionName: string): UserSeries {
    let own = this.functions.get(functionName);
    if (!own) {
      own = { metrics: new Map(), series: new Set(), reported: new Set() };
      this.functions.set(functionName, own);
    }
    return own;
  }

  private add(
    functionName: string,
    own: UserSeries,
    type: MetricOperation,
    full: string,
    labelNames: readonly string[],
  ): Counter | Histogram {
    const naming = { name: full, help, labelNames: ["function", ...labelNames] };
    const metric = type === "increment" ? new Counter(naming) : new Histogram({ ...naming, bounds });
    own.metrics.set(full, { metric, labelNames: labelNames.join(",") });
    let family = this.families.get(full);
    if (!family) {
      family = new OwnFamily(full, metric.type);
      this.families.set(full, family);
    }
    family.members.set(functionName, metric);
    return metric;
  }
}

/** The metrics of all functions under one name. */
class OwnFamily implements Family {
  readonly name: string;
  readonly help = help;
  readonly type: Family["type"];
  /** Keyed by function. */
  readonly members = new Map<string, Counter | Histogram>();

  constructor(name: string, type: Family["type"]) {
    this.name = name;
    this.type = type;
  }

  *lines(): Iterable<string> {
    for (const member of this.members.values()) yield* member.lines();
  }
}

const help = "Recorded by a handler.";

const fullName = (type: MetricOperation, name: string): string =>
  `watchfire_user_${type === "increment" && !name.endsWith("_total") ? `${name}_total` : name}`;

/** Returns why a sample is invalid regardless of earlier ones, or `undefined`. */
function faultOf(
  type: MetricOperation,
  name: string,
  value: number,
  labelNames: readonly string[],
  labels: Readonly<Record<string, string>>,
): string | undefined {
  if (!validName.test(name)) return `the metric's name ${shorten(name)} is not [a-zA-Z_][a-zA-Z0-9_]*`;
  if (type === "observe" && reservedEnding.test(name)) return `a histogram's name may not end like ${name}`;
  // Names that begin with two underscores are reserved for Prometheus.
  const bad = labelNames.find(
    (label) => !validName.test(label) || label.startsWith("__") || label === "function" || label === "le",
  );
  if (bad !== undefined) return `the label ${shorten(bad)} cannot be used`;
  const length = labelNames.reduce((sum, label) => sum + label.length + (labels[label]?.length ?? 0), 0);
  if (length > labelsLimit) return `its labels have ${length} characters, and ${labelsLimit} may be`;
  if (!Number.isFinite(value) || (type === "increment" && value < 0)) return `the value ${value} cannot be used`;
  return undefined;
}
