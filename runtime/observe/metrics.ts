import { collectDefaultMetrics, Registry } from "prom-client";
import type { AccessObserver } from "../access/observer.ts";
import { version } from "../base/version.ts";
import type { EngineObserver } from "../engine/delivery/observer.ts";
import type { WatchObserver } from "../informer/fanout/observer.ts";
import type { SourceSpec } from "../informer/fanout/source-spec.ts";
import type { DeadLetterStock } from "../journal/dead-letter-stats.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { DeathReason } from "../sandbox/host/executor-process.ts";
import type { SandboxObserver } from "../sandbox/host/sandbox.ts";
import { Counter } from "./counter.ts";
import { Histogram } from "./histogram.ts";
import { labelsText, lineOf } from "./labelled-series.ts";
import type { LineDropped } from "./log-writer.ts";
import { type Family, MetricRegistry } from "./metric-registry.ts";
import { UserMetrics } from "./user-metrics.ts";

/** Bucket bounds in seconds, from 1 ms to two minutes: a handler may take as long as its timeout. */
const durationBounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];

/**
 * Milliseconds between two samples of the event loop's lag, which `nodejs_eventloop_lag_*` include. prom-client's default of 10 wakes
 * an idle process 100 times a second, for 0.4 % of a core.
 */
const lagSampleMs = 100;

/** All reasons except `closed`: an executor closed by the sandbox did not die. */
const deathReasons: Readonly<Record<Exclude<DeathReason, "closed">, true>> = {
  memory: true,
  silent: true,
  breach: true,
  stuck: true,
  exited: true,
  refused: true,
};

const perTrigger = ["function", "trigger"] as const;
/** All that tells two sources apart: Prometheus rejects a page on which a series occurs twice. */
const perSource = ["api_version", "kind", "namespace", "label_selector", "field_selector", "representation"] as const;

/** States that are measured at each scrape, because they are not counts. */
export interface Gauges {
  /** Whether this replica is the active one. */
  isActive(): boolean;
  functions(): readonly {
    readonly name: string;
    readonly isPaused: boolean;
    readonly lagSeconds: number;
    readonly dueSeconds: number;
    readonly queued: number;
    readonly inFlight: number;
    /** Set in mode Reconcile. */
    readonly keys?: { readonly count: number; readonly withoutObject: number } | undefined;
    readonly spilled: number;
    readonly letterStock: DeadLetterStock;
    readonly parentSeconds: ReadonlyMap<string, number>;
  }[];
  /** Functions that are not loaded, with what is on record of them. `spilled` is absent if it is not known. */
  unloaded(): readonly {
    readonly name: string;
    readonly spilled: number | undefined;
    readonly letterStock: DeadLetterStock;
  }[];
  /** One entry for every function in `/status` that is not gone, whether it runs or not. A name may occur twice. */
  standings(): readonly { readonly name: string; readonly ready: boolean; readonly reason?: string }[];
  parked(): readonly { readonly name: string; readonly seconds: number }[];
  reads(): readonly {
    readonly function: string;
    readonly apiVersion: string;
    readonly kind: string;
    readonly ready: boolean;
    readonly objects: number;
    readonly bytes: number;
    readonly ageMs?: number | undefined;
  }[];
  /**
   * The memory of all reads in bytes, with shared objects counted once; its limit; and how often each function's reads were
   * suspended.
   */
  cache(): {
    readonly bytes: number;
    readonly limit: number;
    readonly suspensions: readonly { readonly function: string; readonly count: number }[];
  };
  sources(): readonly { readonly spec: SourceSpec; readonly state: string }[];
  /** Functions with a canary. */
  canaries(): readonly { readonly name: string; readonly canary?: CanaryReport | undefined }[];
}

/** Measurements of a canary, and of the code that it is compared with. */
interface CanaryReport {
  readonly state: string;
  readonly current: VersionReport;
  readonly canary: VersionReport;
}

interface VersionReport {
  readonly runs: number;
  readonly failures: number;
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
}

/** How many events of a trigger, of one type, had an outcome: ok, retry, dead_letter, filtered or dropped. */
export interface EventOutcomes {
  readonly trigger: string;
  readonly outcome: string;
  readonly count: number;
}

/** All metrics of the runtime, following Prometheus' conventions. Each name begins with `watchfire_`. */
export class Metrics {
  readonly user: UserMetrics;
  private readonly page = new MetricRegistry();
  /** Metrics of the process and of Node. */
  private readonly defaults = new Registry();

  /** `type`: Added|Modified|Deleted, `outcome`: ok|retry|dead_letter|filtered|dropped. */
  private readonly events = this.tally("events_total", "Events by outcome; a retry does not end an event.", [
    ...perTrigger,
    "type",
    "outcome",
  ]);
  private readonly attempts = this.tally("handler_attempts_total", "Attempts started.", perTrigger);
  private readonly handled = this.spread("handler_duration_seconds", "Duration of attempts.", perTrigger);
  private readonly waited = this.spread(
    "event_wait_seconds",
    "Time from an event's last byte to the start of its handler.",
    perTrigger,
  );
  private readonly stale = this.tally(
    "stale_events_total",
    "Events that were received again and recognised as duplicates.",
    perTrigger,
  );
  private readonly flagged = this.tally("redelivered_total", "Deliveries flagged as redelivered.", perTrigger);
  private readonly spilled = this.tally("spilled_total", "Events that were spilled to disk.", perTrigger);
  private readonly collapsed = this.tally(
    "backlog_collapsed_total",
    "Waiting events that a newer one of their object replaced, because the object had more than its share of the queue.",
    perTrigger,
  );
  /** `condition`: the condition's name; `result`: `error` counts as false, `limit` as true. */
  private readonly conditionErrors = this.tally(
    "match_condition_errors_total",
    "Match conditions that could not be evaluated, or exceeded their cost limit.",
    [...perTrigger, "condition", "result"],
  );
  private readonly commits = this.spread("checkpoint_commit_duration_seconds", "Duration of checkpoint writes.", []);
  private readonly commitRows = this.tally("checkpoint_rows_total", "Rows written to the checkpoint.", []);
  private readonly commitFailures = this.tally("checkpoint_errors_total", "Checkpoint writes that failed.", []);

  /** `cause`: why a connection ended, such as `eof`, `idle`, `http_429`. */
  private readonly reconnects = this.tally("watch_reconnects_total", "Watch connections that ended.", [
    ...perSource,
    "cause",
  ]);
  private readonly gone = this.tally(
    "watch_gone_total",
    "Number of times that history was expired and a list was needed.",
    perSource,
  );
  private readonly lists = this.spread("watch_list_duration_seconds", "Duration of complete lists.", perSource);
  /** `type`: Added|Modified|Deleted|Bookmark. */
  private readonly received = this.tally("watch_events_total", "Events that watches delivered.", [
    ...perSource,
    "type",
  ]);
  private readonly receivedBytes = this.tally("watch_bytes_total", "Bytes of the objects received.", perSource);
  private readonly watchStale = this.tally(
    "watch_stale_total",
    "Events and bookmarks that were older than an earlier one.",
    perSource,
  );
  private readonly poisoned = this.tally("watch_poison_lines_total", "Lines that violate the protocol.", perSource);

  /** `function`: empty for the runtime's own lines; `reason`: rate|reader. */
  private readonly linesDropped = this.tally(
    "log_lines_dropped_total",
    "Log lines beyond their function's rate, or beyond what the log's reader accepts.",
    ["function", "reason"],
  );

  /** `reason`: quiet|full|failed. */
  private readonly historyDropped = this.tally(
    "history_dropped_total",
    "Runs and log lines that the history does not have: quiet runs beyond its rate, or what it had no room for, or could not write.",
    ["reason"],
  );

  /** `result`: sent|dropped|failed. */
  private readonly spans = this.tally(
    "trace_spans_total",
    "Spans of traces: sent to the collector, dropped because too many waited, or not taken by the collector.",
    ["result"],
  );

  /** `operation`: such as kube.get; `result`: ok, refused, or the error's class. */
  private readonly calls = this.spread("client_call_duration_seconds", "Duration of calls that handlers made.", [
    "function",
    "operation",
    "result",
  ]);

  /** `reason`: memory|silent|breach|stuck|exited|refused. */
  private readonly executorDeaths = this.tally("executor_deaths_total", "Executors that died.", ["reason"]);
  private readonly kills = this.tally("function_kills_total", "Executors that a function caused to die.", ["function"]);

  constructor() {
    this.user = new UserMetrics(this.page);
    for (const reason of Object.keys(deathReasons)) this.executorDeaths.begin(reason);
    const eventLoopMonitoringPrecision = lagSampleMs;
    collectDefaultMetrics({ register: this.defaults, prefix: "watchfire_", eventLoopMonitoringPrecision });
    const build = gauge(
      "build_info",
      "1; the labels are the versions of the runtime and of Node.",
      ["version", "node"],
      [[version, process.versions.node, 1]],
    );
    this.page.addAll(() => [build]);
  }

  /** Returns all metrics as Prometheus text. Default: without states. */
  async text(gauges?: Gauges): Promise<string> {
    // Separate readers, because each takes some milliseconds of the event loop with 2,000 functions.
    const states = gauges ? [() => statesOf(gauges), () => standingOf(gauges), () => canariesOf(gauges)] : [];
    return (await this.page.text(states)) + (await this.defaults.metrics());
  }

  /** Returns how many events of a function had each outcome, by trigger, since the start. */
  outcomesOf(functionName: string): EventOutcomes[] {
    return this.events.countsOf(functionName).map(({ others: [trigger = "", , outcome = ""], count }) => {
      return { trigger, outcome, count };
    });
  }

  /** Returns the mean duration of a function's attempts since the start, in milliseconds. `undefined` before the first. */
  meanMsOf(functionName: string): number | undefined {
    const mean = this.handled.meanOf(functionName);
    return mean === undefined ? undefined : mean * 1000;
  }

  readonly dispatch: EngineObserver = {
    declared: (manifest) => this.begin(manifest),
    event: (fn, trigger, type, outcome, count = 1) => this.events.add(count, fn, trigger, type, outcome),
    attempt: (fn, trigger, waitedMs) => {
      this.attempts.add(1, fn, trigger);
      this.waited.observe(waitedMs / 1000, fn, trigger);
    },
    handled: (fn, trigger, durationMs) => this.handled.observe(durationMs / 1000, fn, trigger),
    stale: (fn, trigger) => this.stale.add(1, fn, trigger),
    flagged: (fn, trigger) => this.flagged.add(1, fn, trigger),
    spilled: (fn, trigger) => this.spilled.add(1, fn, trigger),
    collapsed: (fn, trigger, count) => this.collapsed.add(count, fn, trigger),
    conditionError: (fn, trigger, condition, result) => this.conditionErrors.add(1, fn, trigger, condition, result),
    committed: (durationMs, rows) => {
      this.commits.observe(durationMs / 1000);
      this.commitRows.add(rows);
    },
    commitFailed: () => this.commitFailures.add(1),
  };

  readonly sources: Omit<WatchObserver, "stateChanged"> = {
    reconnected: (spec, cause) => this.reconnects.add(1, ...sourceValues(spec), cause),
    gone: (spec) => this.gone.add(1, ...sourceValues(spec)),
    listed: (spec, _items, durationMs) => this.lists.observe(durationMs / 1000, ...sourceValues(spec)),
    received: (spec, type, bytes) => {
      // Named one by one: spreading an array of them allocated 0.5 KB for each event.
      const {
        apiVersion,
        kind,
        namespace = "",
        labelSelector = "",
        fieldSelector = "",
        representation = "full",
      } = spec;
      this.received.add(1, apiVersion, kind, namespace, labelSelector, fieldSelector, representation, type);
      this.receivedBytes.add(bytes, apiVersion, kind, namespace, labelSelector, fieldSelector, representation);
    },
    stale: (spec) => this.watchStale.add(1, ...sourceValues(spec)),
    poisoned: (spec) => this.poisoned.add(1, ...sourceValues(spec)),
  };

  readonly lineDropped: LineDropped = (fn, reason) => this.linesDropped.add(1, fn, reason);

  readonly notInHistory = (reason: string, count: number): void => this.historyDropped.add(count, reason);

  readonly spansEnded = (result: string, count: number): void => this.spans.add(count, result);

  readonly access: AccessObserver = {
    called: ({ function: fn, operation, result, durationMs }) =>
      this.calls.observe(durationMs / 1000, fn, operation, result),
  };

  readonly sandbox: SandboxObserver = {
    executorDied: (reason) => this.executorDeaths.add(1, reason),
    functionKilled: (fn) => this.kills.add(1, fn),
  };

  /** Creates series with value 0 on which alerts are based, so that the first failure is an increase. */
  private begin({ name, triggers, schedules, delivery }: FunctionManifest): void {
    const { onFailure } = delivery;
    for (const { name: trigger, matchConditions, events } of triggers) {
      if (events.includes("Modified")) this.collapsed.begin(name, trigger);
      for (const condition of matchConditions) {
        for (const result of ["error", "limit"]) this.conditionErrors.begin(name, trigger, condition.name, result);
      }
      for (const type of events) {
        // In each mode, a Modified event may be replaced by a newer one.
        if (onFailure === "Drop" || type === "Modified") this.events.begin(name, trigger, type, "dropped");
      }
    }
    if (onFailure === "Drop")
      for (const { name: trigger } of schedules) this.events.begin(name, trigger, "Scheduled", "dropped");
  }

  private tally(name: string, help: string, labelNames: readonly string[]): Counter {
    return this.page.add(new Counter({ name: `watchfire_${name}`, help, labelNames }));
  }

  private spread(name: string, help: string, labelNames: readonly string[]): Histogram {
    return this.page.add(new Histogram({ name: `watchfire_${name}`, help, labelNames, bounds: durationBounds }));
  }
}

/** Label values followed by a number. */
type Sample = readonly [...labels: string[], value: number];

/** A metric of a current state. `samples` are read once. */
function gauge(
  name: string,
  help: string,
  labelNames: readonly string[],
  samples: Iterable<Sample>,
  type: Family["type"] = "gauge",
): Family {
  const full = `watchfire_${name}`;
  return {
    name: full,
    help,
    type,
    *lines() {
      for (const sample of samples) {
        yield lineOf(full, labelsText(labelNames, sample.slice(0, -1) as string[]), sample.at(-1) as number);
      }
    },
  };
}

/** Series of functions that have a canary: at most nine each. */
function canariesOf({ canaries }: Gauges): Family[] {
  const versions = canaries().flatMap(({ name, canary }) =>
    canary
      ? (["current", "canary"] as const).map((version) => ({ name, version, state: canary.state, ...canary[version] }))
      : [],
  );
  return [
    gauge(
      "canary_attempts_total",
      "Attempts of each version of a function that has a canary, since the canary began, by result: `ok` or `failed`.",
      ["function", "version", "result"],
      versions.flatMap(({ name, version, runs, failures }): Sample[] => [
        [name, version, "ok", runs - failures],
        [name, version, "failed", failures],
      ]),
      "counter",
    ),
    gauge(
      "canary_attempt_duration_seconds",
      "Quantiles of the duration of those attempts, at most 10 % too high.",
      ["function", "version", "quantile"],
      versions.flatMap(({ name, version, p50Ms, p99Ms }): Sample[] =>
        p50Ms === undefined || p99Ms === undefined
          ? []
          : [
              [name, version, "0.5", p50Ms / 1000],
              [name, version, "0.99", p99Ms / 1000],
            ],
      ),
    ),
    gauge(
      "canary_aborted",
      "1 if the function's canary was aborted by the runtime, 0 while it runs.",
      ["function"],
      versions.flatMap(({ name, version, state }): Sample[] =>
        version === "canary" ? [[name, state === "aborted" ? 1 : 0]] : [],
      ),
    ),
  ];
}

function statesOf({ isActive, functions: read, unloaded, parked, sources, reads, cache: readCache }: Gauges): Family[] {
  const functions = read();
  const cache = readCache();
  const each = perFunction(functions);
  const onRecord = perFunction([...functions, ...unloaded()]);
  const dropped = "that were dropped because of their function's limit, oldest first.";
  return [
    gauge("leader", "1 while this replica is the active one.", [], [[isActive() ? 1 : 0]]),
    each("function_lag_seconds", "Age of the oldest unfinished event.", (of) => of.lagSeconds),
    each(
      "function_oldest_event_age_seconds",
      "Age of the oldest event that could run and has not started.",
      (of) => of.dueSeconds,
    ),
    gauge(
      "oldest_event_age_seconds",
      "Maximum of function_oldest_event_age_seconds over all functions that this replica runs.",
      [],
      [[functions.reduce((oldest, of) => Math.max(oldest, of.dueSeconds), 0)]],
    ),
    gauge(
      "parent_seconds_total",
      "Time of the runtime's event loop that was used for the function, by kind of work: `conditions`, `keys`, `rows`, `lists`, `schedules`, `calls`, `logs`, `errors`.",
      ["function", "work"],
      functions.flatMap(({ name, parentSeconds }) => [...parentSeconds].map((each): Sample => [name, ...each])),
      "counter",
    ),
    each("function_queued", "Number of waiting events.", (of) => of.queued),
    onRecord(
      "function_spilled",
      "Number of events on disk, also of a function that is not loaded.",
      (of) => of.spilled,
    ),
    gauge(
      "function_keys",
      "Keys of a reconciler that will run, now or later, by whether they have an object.",
      ["function", "object"],
      functions.flatMap(({ name, keys }): Sample[] =>
        keys
          ? [
              [name, "yes", keys.count - keys.withoutObject],
              [name, "no", keys.withoutObject],
            ]
          : [],
      ),
    ),
    each("function_in_flight", "Number of running attempts.", (of) => of.inFlight),
    each("function_paused", "1 while the function is paused, by its manifest or by a command.", (of) =>
      Number(of.isPaused),
    ),
    gauge(
      "function_parked_seconds",
      "Seconds until a function that caused executors to die runs again.",
      ["function"],
      parked().map(({ name, seconds }): Sample => [name, seconds]),
    ),
    onRecord("dead_letters", "Number of stored dead letters.", (of) => of.letterStock.count),
    onRecord("dead_letter_bytes", "Size of the dead letters, records and bodies.", (of) => of.letterStock.bytes),
    onRecord(
      "dead_letter_bodies_dropped_total",
      `Bodies of dead letters ${dropped}`,
      (of) => of.letterStock.bodiesDropped,
      "counter",
    ),
    onRecord("dead_letters_dropped_total", `Dead letters ${dropped}`, (of) => of.letterStock.lettersDropped, "counter"),
    ...readsOf(reads()),
    gauge("reads_bytes", "Memory of all reads; objects that functions share count once.", [], [[cache.bytes]]),
    gauge("reads_limit_bytes", "Limit of the memory of all reads: `--cache-limit`.", [], [[cache.limit]]),
    gauge(
      "reads_suspended_total",
      "Number of times that a function's reads exceeded its own limit or the common limit and were emptied.",
      ["function"],
      cache.suspensions.map(({ function: name, count }): Sample => [name, count]),
      "counter",
    ),
    gauge(
      "source_state",
      "1 for the current state of a source.",
      [...perSource, "state"],
      sources().map(({ spec, state }): Sample => [...sourceValues(spec), state, 1]),
    ),
  ];
}

/** Metrics that have one value for each function, if it is known. */
const perFunction =
  <Of extends { readonly name: string }>(all: readonly Of[]) =>
  (name: string, help: string, value: (of: Of) => number | undefined, type?: Family["type"]) => {
    const samples = all.flatMap((of): Sample[] => {
      const found = value(of);
      return found === undefined ? [] : [[of.name, found]];
    });
    return gauge(name, help, ["function"], samples, type);
  };

function standingOf({ standings }: Gauges): Family[] {
  const worst = worstOfName(standings());
  return [
    gauge(
      "function_ready",
      "1 while the function accepts events; for every function in `/status` that is not gone.",
      ["function"],
      worst.map(({ name, ready }): Sample => [name, Number(ready)]),
    ),
    gauge(
      "function_reason",
      "1 for the reason in `/status`; a function that is ready may also have one.",
      ["function", "reason"],
      worst.flatMap(({ name, reason }): Sample[] => (reason === undefined ? [] : [[name, reason, 1]])),
    ),
  ];
}

/** Two files may declare one name. Prometheus rejects the whole text if a series occurs twice. */
function worstOfName(standings: ReturnType<Gauges["standings"]>): ReturnType<Gauges["standings"]> {
  const worst = new Map<string, (typeof standings)[number]>();
  for (const each of standings) {
    const known = worst.get(each.name);
    if (!known || (known.ready && (!each.ready || known.reason === undefined))) worst.set(each.name, each);
  }
  return [...worst.values()];
}

/** Metrics of reads. Their labels come from manifests: a function's read of one kind. */
function readsOf(reads: ReturnType<Gauges["reads"]>): Family[] {
  type Of = (typeof reads)[number];
  const each = (name: string, help: string, value: (of: Of) => number | undefined) => {
    const samples = reads.flatMap((of): Sample[] => {
      const found = value(of);
      return found === undefined ? [] : [[of.function, of.apiVersion, of.kind, found]];
    });
    return gauge(`read_${name}`, help, ["function", "api_version", "kind"], samples);
  };
  return [
    each("objects", "Number of objects that a function's read keeps.", (of) => of.objects),
    each("bytes", "Memory of these objects; objects that functions share count for each.", (of) => of.bytes),
    each("synced", "1 once its first list is complete.", (of) => Number(of.ready)),
    each("age_seconds", "Seconds since the API server last sent anything for this read.", ({ ageMs }) =>
      ageMs === undefined ? undefined : ageMs / 1000,
    ),
  ];
}

const sourceValues = (spec: SourceSpec) => {
  const { apiVersion, kind, namespace = "", labelSelector = "", fieldSelector = "", representation = "full" } = spec;
  return [apiVersion, kind, namespace, labelSelector, fieldSelector, representation] as const;
};
