import { shorten } from "../base/wording.ts";
import { Counter } from "./counter.ts";
import { Histogram } from "./histogram.ts";
import type { Family, MetricRegistry } from "./metric-registry.ts";

/** A function may have at most this many series: the usual advice for one exporter's metric is tens, and labels multiply. */
const seriesLimit = 200;
/** Characters of all labels of one series, names and values: 200 histograms of such are 2 MB of text. */
const labelsLimit = 512;
/** Names of a function's metrics that a refusal is told of: a name may be another for every event. */
const toldLimit = 20;

/** Of a handler's histograms: Prometheus's own default, from 5 ms to 10 s where seconds are observed. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const validName = /^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/;
/** Of histograms: a counter's ending, and those of a histogram's own series. */
const reservedEnding = /_(?:total|bucket|count|sum)$/;

type MetricOperation = "increment" | "observe";

/** What one function counts under one name. */
interface UserMetric {
  readonly metric: Counter | Histogram;
  readonly labelNames: string;
}

interface UserSeries {
  readonly metrics: Map<string, UserMetric>;
  readonly series: Set<string>;
  /** Names of metrics that were refused. */
  readonly told: Set<string>;
}

/**
 * What handlers count by `ctx.metrics`: `watchfire_user_<name>_total` or the histogram `watchfire_user_<name>`, with the
 * label `function` and the handler's own. A function cannot touch another's series, nor its names: each uses a name with
 * labels of its own, and the endings keep the types apart. Nor can it have more than {@link seriesLimit} series.
 */
export class UserMetrics {
  private readonly functions = new Map<string, UserSeries>();
  /** By the name that Prometheus sees: what each function counts under it. */
  private readonly families = new Map<string, OwnFamily>();

  constructor(page: Pick<MetricRegistry, "addAll">) {
    page.addAll(() => this.families.values());
  }

  /**
   * Adds one sample.
   * @returns undefined, or why it was refused, in words for the function's log
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

  /** Whether a refusal is to be told: the first of each name, of some names. */
  isNews(functionName: string, name: string): boolean {
    const { told } = this.own(functionName);
    if (told.has(name) || told.size >= toldLimit) return false;
    told.add(name);
    return true;
  }

  /** Forgets a function that is unloaded, and its series. */
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
      own = { metrics: new Map(), series: new Set(), told: new Set() };
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

/** What functions count under one name. */
class OwnFamily implements Family {
  readonly name: string;
  readonly help = help;
  readonly type: Family["type"];
  /** By function. */
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

/** Why a sample cannot be taken, whatever came before it. */
function faultOf(
  type: MetricOperation,
  name: string,
  value: number,
  labelNames: readonly string[],
  labels: Readonly<Record<string, string>>,
): string | undefined {
  if (!validName.test(name)) return `the metric's name ${shorten(name)} is not [a-zA-Z_][a-zA-Z0-9_]*`;
  if (type === "observe" && reservedEnding.test(name)) return `a histogram's name may not end like ${name}`;
  // Those of Prometheus itself begin with two underscores.
  const bad = labelNames.find(
    (label) => !validName.test(label) || label.startsWith("__") || label === "function" || label === "le",
  );
  if (bad !== undefined) return `the label ${shorten(bad)} cannot be used`;
  const length = labelNames.reduce((sum, label) => sum + label.length + (labels[label]?.length ?? 0), 0);
  if (length > labelsLimit) return `its labels have ${length} characters, and ${labelsLimit} may be`;
  if (!Number.isFinite(value) || (type === "increment" && value < 0)) return `the value ${value} cannot be used`;
  return undefined;
}
