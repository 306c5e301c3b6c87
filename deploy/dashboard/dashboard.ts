import { type KnownMetric, knownMetrics } from "./known-metrics.ts";

/** One line of a panel. `$release` in the query selects the release's series. */
interface Query {
  readonly expr: string;
  /** Grafana's format of the line's name, such as `{{function}}`. */
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  /** Grafana's name of the unit. */
  readonly unit: string;
  readonly queries: readonly Query[];
}

/** Number of functions that a panel shows. */
const shown = 10;

const top = (expr: string): string => `topk(${shown}, ${expr})`;
const rate = (metric: string, labels = ""): string => `rate(${metric}{${labels}$release}[$__rate_interval])`;
const byFunction = (expr: string): Query => ({ expr: top(`sum by (function) (${expr})`), legend: "{{function}}" });
const quantile = (share: number, metric: string, legend: string): Query => ({
  expr: `histogram_quantile(${share}, sum by (le) (${rate(`${metric}_bucket`)}))`,
  legend,
});

/** The panels, in rows of two. */
const panels: readonly Panel[] = [
  {
    title: "Events by outcome",
    unit: "ops",
    queries: [{ expr: `sum by (outcome) (${rate("watchfire_events_total")})`, legend: "{{outcome}}" }],
  },
  {
    title: "Failed attempts, by function",
    unit: "ops",
    queries: [byFunction(rate("watchfire_events_total", 'outcome=~"retry|dead_letter",'))],
  },
  { title: "Waiting events, by function", unit: "short", queries: [byFunction("watchfire_function_queued{$release}")] },
  {
    title: "Age of the oldest unfinished event, by function",
    unit: "s",
    queries: [{ expr: top("max by (function) (watchfire_function_lag_seconds{$release})"), legend: "{{function}}" }],
  },
  { title: "Dead letters, by function", unit: "short", queries: [byFunction("watchfire_dead_letters{$release}")] },
  {
    title: "Functions that are not ready, and why",
    unit: "short",
    queries: [
      {
        expr: "sum by (function, reason) (watchfire_function_reason{$release}) unless on (function) watchfire_function_ready{$release} == 1",
        legend: "{{function}}: {{reason}}",
      },
    ],
  },
  {
    title: "From an event's arrival to its handler's start",
    unit: "s",
    queries: [
      quantile(0.5, "watchfire_event_wait_seconds", "p50"),
      quantile(0.99, "watchfire_event_wait_seconds", "p99"),
    ],
  },
  {
    title: "Duration of attempts",
    unit: "s",
    queries: [
      quantile(0.5, "watchfire_handler_duration_seconds", "p50"),
      quantile(0.99, "watchfire_handler_duration_seconds", "p99"),
    ],
  },
  {
    title: "The runtime's seconds per second, by function",
    unit: "percentunit",
    queries: [byFunction(rate("watchfire_parent_seconds_total"))],
  },
  {
    title: "Memory of the runtime",
    unit: "bytes",
    queries: [
      { expr: "watchfire_process_resident_memory_bytes{$release}", legend: "{{pod}} resident" },
      { expr: "watchfire_nodejs_heap_size_used_bytes{$release}", legend: "{{pod}} heap" },
      { expr: "watchfire_reads_bytes{$release}", legend: "{{pod}} reads" },
    ],
  },
  {
    title: "CPU of the runtime, and delay of its event loop",
    unit: "s",
    queries: [
      { expr: rate("watchfire_process_cpu_seconds_total"), legend: "{{pod}} CPU" },
      { expr: "watchfire_nodejs_eventloop_lag_p99_seconds{$release}", legend: "{{pod}} delay p99" },
    ],
  },
  {
    title: "Store: size of dead letters, by function",
    unit: "bytes",
    queries: [byFunction("watchfire_dead_letter_bytes{$release}")],
  },
  {
    title: "Store: events on disk, by function",
    unit: "short",
    queries: [byFunction("watchfire_function_spilled{$release}")],
  },
  {
    title: "Store: duration of writes",
    unit: "s",
    queries: [
      quantile(0.99, "watchfire_checkpoint_commit_duration_seconds", "p99"),
      { expr: `sum(${rate("watchfire_checkpoint_errors_total")})`, legend: "errors per second" },
    ],
  },
  {
    title: "Calls of handlers, by result",
    unit: "ops",
    queries: [
      { expr: `sum by (result) (${rate("watchfire_client_call_duration_seconds_count")})`, legend: "{{result}}" },
    ],
  },
  {
    title: "API server: watches that ended, and lists",
    unit: "ops",
    queries: [
      { expr: `sum by (cause) (${rate("watchfire_watch_reconnects_total")})`, legend: "{{cause}}" },
      { expr: `sum(${rate("watchfire_watch_list_duration_seconds_count")})`, legend: "lists" },
    ],
  },
  {
    title: "Executors that died, by reason",
    unit: "ops",
    queries: [{ expr: `sum by (reason) (${rate("watchfire_executor_deaths_total")})`, legend: "{{reason}}" }],
  },
  {
    title: "Active replicas",
    unit: "short",
    queries: [{ expr: "watchfire_leader{$release}", legend: "{{pod}}" }],
  },
];

/** Returns the names of metrics in a query. */
export const metricsIn = (expr: string): string[] => expr.match(/\bwatchfire_\w+/g) ?? [];

/** Returns the metric of a series: those of a histogram have suffixes. */
export const metricOf = (series: string, known: readonly KnownMetric[]): KnownMetric | undefined =>
  known.find(
    ({ name, type }) => name === (type === "histogram" ? series.replace(/_(?:bucket|sum|count)$/, "") : series),
  );

/** Width and height of a panel in Grafana's grid of 24 columns. */
const [width, height] = [12, 8];
/** Version of Grafana's schema; later Grafanas convert it. */
const schemaVersion = 39;

/**
 * Returns Grafana's JSON, without a title and a uid: the chart adds the release's. Descriptions are the metrics' own.
 * @throws Error for a metric that the runtime does not have
 */
export async function dashboard(): Promise<object> {
  const known = await knownMetrics();
  const source = { type: "prometheus", uid: "$datasource" };
  const describe = (series: string): string => {
    const metric = metricOf(series, known);
    if (!metric) throw new Error(`a panel names ${series}, which is no metric of the runtime`);
    return `${metric.name}: ${metric.help}`;
  };
  return {
    tags: ["watchfire"],
    schemaVersion,
    editable: true,
    refresh: "30s",
    time: { from: "now-3h", to: "now" },
    templating: {
      list: [{ name: "datasource", label: "Data source", type: "datasource", query: "prometheus" }],
    },
    panels: panels.map(({ title, unit, queries }, index) => ({
      id: index + 1,
      type: "timeseries",
      title,
      description: [...new Set(queries.flatMap(({ expr }) => metricsIn(expr)).map(describe))].join("\n\n"),
      datasource: source,
      gridPos: { x: (index % 2) * width, y: Math.floor(index / 2) * height, w: width, h: height },
      fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
      options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
      targets: queries.map(({ expr, legend }, number) => ({
        refId: String.fromCharCode("A".charCodeAt(0) + number),
        datasource: source,
        expr,
        legendFormat: legend,
      })),
    })),
  };
}
