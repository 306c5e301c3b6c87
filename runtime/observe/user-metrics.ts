import { Counter, Histogram, type Metric, type Registry } from "prom-client";
import { shorten } from "../wording.ts";

/** A function may have at most this many series: the usual advice for one exporter's metric is tens, and labels multiply. */
const seriesLimit = 200;
/** Characters of all labels of one series, names and values: 200 histograms of such are 2 MB of text. */
const labelsLimit = 512;
/** Names of a function's metrics that a refusal is told of: a name may be another for every event. */
const toldLimit = 20;

const validName = /^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/;
/** Of histograms: a counter's ending, and those of a histogram's own series. */
const reservedEnding = /_(?:total|bucket|count|sum)$/;

type Type = "increment" | "observe";

/** What one function counts under one name. */
interface Own {
  readonly metric: Counter | Histogram;
  readonly labelNames: string;
}

interface Counted {
  readonly metrics: Map<string, Own>;
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
  private readonly registry: Registry;
  private readonly functions = new Map<string, Counted>();
  /** By the name that Prometheus sees: what each function counts under it. */
  private readonly families = new Map<string, Map<string, Counter | Histogram>>();

  constructor(registry: Registry) {
    this.registry = registry;
  }

  /**
   * Adds one sample.
   * @returns undefined, or why it was refused, in words for the function's log
   */
  record(
    functionName: string,
    type: Type,
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
    const all = { function: functionName, ...labels };
    if (metric instanceof Counter) metric.inc(all, value);
    else metric.observe(all, value);
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
      const members = this.families.get(full);
      members?.delete(functionName);
      if (members?.size !== 0) continue;
      this.families.delete(full);
      this.registry.removeSingleMetric(full);
    }
  }

  private own(functionName: string): Counted {
    let own = this.functions.get(functionName);
    if (!own) {
      own = { metrics: new Map(), series: new Set(), told: new Set() };
      this.functions.set(functionName, own);
    }
    return own;
  }

  private add(
    functionName: string,
    own: Counted,
    type: Type,
    full: string,
    labelNames: readonly string[],
  ): Counter | Histogram {
    const options = { name: full, help, labelNames: ["function", ...labelNames], registers: [] };
    const metric = type === "increment" ? new Counter(options) : new Histogram(options);
    own.metrics.set(full, { metric, labelNames: labelNames.join(",") });
    this.family(type, full).set(functionName, metric);
    return metric;
  }

  private family(type: Type, full: string): Map<string, Counter | Histogram> {
    const known = this.families.get(full);
    if (known) return known;
    const members = new Map<string, Counter | Histogram>();
    const get = async () => {
      const shown = await Promise.all([...members.values()].map((metric) => metric.get()));
      const values = shown.flatMap((metric) => metric.values);
      return { name: full, help, type: type === "increment" ? "counter" : "histogram", values };
    };
    // Of a metric's methods the registry asks for this one alone.
    this.registry.registerMetric({ name: full, get } as unknown as Metric<string>);
    this.families.set(full, members);
    return members;
  }
}

const help = "Recorded by a handler.";

const fullName = (type: Type, name: string): string =>
  `watchfire_user_${type === "increment" && !name.endsWith("_total") ? `${name}_total` : name}`;

/** Why a sample cannot be taken, whatever came before it. */
function faultOf(
  type: Type,
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
