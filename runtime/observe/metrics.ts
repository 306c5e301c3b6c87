import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { AccessObserver } from "../access/observer.ts";
import type { LetterStock } from "../checkpoint/letter-ledger.ts";
import type { Observer as DispatchObserver } from "../dispatch/delivery/observer.ts";
import type { SandboxObserver } from "../sandbox/host/sandbox.ts";
import type { WatchObserver } from "../watch/observer.ts";
import type { SourceSpec } from "../watch/source-spec.ts";
import type { LineDropped } from "./log-writer.ts";
import { Tally } from "./tally.ts";
import { UserMetrics } from "./user-metrics.ts";

/** From 1 ms to two minutes: a handler may take as long as its timeout. */
const durationBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];

const perTrigger = ["function", "trigger"] as const;
const perSource = ["api_version", "kind", "namespace"] as const;

/** What is measured when somebody asks, because it is a state and not a count. */
export interface Gauges {
  functions(): readonly {
    readonly name: string;
    readonly lagSeconds: number;
    readonly queued: number;
    readonly inFlight: number;
  }[];
  parked(): readonly { readonly name: string; readonly seconds: number }[];
  sources(): readonly { readonly spec: SourceSpec; readonly state: string }[];
  deadLetters(): Promise<ReadonlyMap<string, LetterStock>>;
}

/** Every metric of the runtime, by Prometheus's conventions; each begins with `watchfire_`. */
export class Metrics {
  readonly user: UserMetrics;
  private readonly registry = new Registry();

  /** `function`, `trigger`, `type` Added|Modified|Deleted, `outcome` ok|retry|dead_letter|filtered|dropped. */
  private readonly events = this.tally("events_total", "Events by how they ended; retry is not an end.", [
    ...perTrigger,
    "type",
    "outcome",
  ]);
  private readonly attempts = this.tally("handler_attempts_total", "Attempts begun.", perTrigger);
  private readonly handled = this.histogram("handler_duration_seconds", "How long attempts ran.", perTrigger);
  private readonly waited = this.histogram(
    "event_wait_seconds",
    "From an event's last byte to its handler.",
    perTrigger,
  );
  private readonly stale = this.counter("stale_events_total", "Events received again and recognised.", perTrigger);
  private readonly flagged = this.counter("redelivered_total", "Deliveries flagged as redelivered.", perTrigger);
  private readonly spilled = this.counter("spilled_total", "Events that went to disk to wait.", perTrigger);
  /** `condition`: its name; `result`: error counts as not holding, limit as holding. */
  private readonly conditionErrors = this.counter(
    "match_condition_errors_total",
    "Match conditions that could not be evaluated, or went over their cost limit.",
    [...perTrigger, "condition", "result"],
  );
  private readonly commits = this.histogram(
    "checkpoint_commit_duration_seconds",
    "How long checkpoint writes took.",
    [],
  );
  private readonly commitRows = this.counter("checkpoint_rows_total", "Rows written to the checkpoint.", []);
  private readonly commitFailures = this.counter("checkpoint_errors_total", "Checkpoint writes that failed.", []);

  /** `cause`: why a connection ended, such as `eof`, `idle`, `http_429`. */
  private readonly reconnects = this.counter("watch_reconnects_total", "Watch connections that ended.", [
    ...perSource,
    "cause",
  ]);
  private readonly gone = this.counter(
    "watch_gone_total",
    "Times that history was gone and a list was needed.",
    perSource,
  );
  private readonly lists = this.histogram("watch_list_duration_seconds", "How long complete lists took.", perSource);
  /** `type`: Added|Modified|Deleted|Bookmark. */
  private readonly received = this.tally("watch_events_total", "What watches delivered.", [...perSource, "type"]);
  private readonly receivedBytes = this.tally("watch_bytes_total", "Bytes of the objects received.", perSource);
  private readonly watchStale = this.counter(
    "watch_stale_total",
    "Events and bookmarks older than one before.",
    perSource,
  );
  private readonly poisoned = this.counter(
    "watch_poison_lines_total",
    "Lines that the protocol does not allow.",
    perSource,
  );

  /** `function`: empty for the runtime's own lines; `reason` rate|reader. */
  private readonly linesDropped = this.tally(
    "log_lines_dropped_total",
    "Lines over their function's rate, or more than the log's reader takes.",
    ["function", "reason"],
  );

  /** `operation` such as kube.get; `result` ok, refused, or the error's class. */
  private readonly calls = this.histogram("client_call_duration_seconds", "Calls that handlers made.", [
    "function",
    "operation",
    "result",
  ]);

  /** `reason` memory|silent|breach|stuck|exited|refused. */
  private readonly executorDeaths = this.counter("executor_deaths_total", "Executors that died.", ["reason"]);
  private readonly kills = this.counter("function_kills_total", "Executors that a function brought down.", [
    "function",
  ]);

  constructor() {
    this.user = new UserMetrics(this.registry);
    collectDefaultMetrics({ register: this.registry, prefix: "watchfire_" });
  }

  /** Prometheus text. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  /** Shows whether this replica is the active one. */
  leader(read: () => boolean): void {
    this.gauge("leader", "1 while this replica is the active one.", [], (gauge) => gauge.set(read() ? 1 : 0));
  }

  /** Shows states at each scrape. */
  watch(gauges: Gauges): void {
    this.gauge("function_lag_seconds", "Age of the oldest event that is not done.", ["function"], (gauge) => {
      for (const { name, lagSeconds } of gauges.functions()) gauge.set({ function: name }, lagSeconds);
    });
    this.gauge("function_queued", "Events that wait.", ["function"], (gauge) => {
      for (const { name, queued } of gauges.functions()) gauge.set({ function: name }, queued);
    });
    this.gauge("function_in_flight", "Attempts that run.", ["function"], (gauge) => {
      for (const { name, inFlight } of gauges.functions()) gauge.set({ function: name }, inFlight);
    });
    this.gauge(
      "function_parked_seconds",
      "Until a function that brought executors down runs again.",
      ["function"],
      (gauge) => {
        for (const { name, seconds } of gauges.parked()) gauge.set({ function: name }, seconds);
      },
    );
    this.gauge("dead_letters", "Events that were given up and are kept.", ["function"], async (gauge) => {
      for (const [name, { count }] of await gauges.deadLetters()) gauge.set({ function: name }, count);
    });
    this.gauge("dead_letter_bytes", "What they take, records and bodies.", ["function"], async (gauge) => {
      for (const [name, { bytes }] of await gauges.deadLetters()) gauge.set({ function: name }, bytes);
    });
    const bodies = "Bodies of dead letters that went beyond their function's limit, oldest first.";
    this.total("dead_letter_bodies_dropped_total", bodies, ["function"], async (counter) => {
      for (const [name, { bodiesDropped }] of await gauges.deadLetters())
        counter.inc({ function: name }, bodiesDropped);
    });
    const letters = "Dead letters that went beyond their function's limit, oldest first.";
    this.total("dead_letters_dropped_total", letters, ["function"], async (counter) => {
      for (const [name, { lettersDropped }] of await gauges.deadLetters()) {
        counter.inc({ function: name }, lettersDropped);
      }
    });
    this.gauge("source_state", "1 for the state a source is in.", [...perSource, "state"], (gauge) => {
      for (const { spec, state } of gauges.sources()) gauge.set({ ...sourceLabels(spec), state }, 1);
    });
  }

  readonly dispatch: DispatchObserver = {
    event: (fn, trigger, type, outcome) => this.events.add(1, fn, trigger, type, outcome),
    attempt: (fn, trigger, waitedMs) => {
      this.attempts.add(1, fn, trigger);
      this.waited.observe({ function: fn, trigger }, waitedMs / 1000);
    },
    handled: (fn, trigger, durationMs) => this.handled.observe({ function: fn, trigger }, durationMs / 1000),
    stale: (fn, trigger) => this.stale.inc({ function: fn, trigger }),
    flagged: (fn, trigger) => this.flagged.inc({ function: fn, trigger }),
    spilled: (fn, trigger) => this.spilled.inc({ function: fn, trigger }),
    conditionError: (fn, trigger, condition, result) =>
      this.conditionErrors.inc({ function: fn, trigger, condition, result }),
    committed: (durationMs, rows) => {
      this.commits.observe(durationMs / 1000);
      this.commitRows.inc(rows);
    },
    commitFailed: () => this.commitFailures.inc(),
  };

  readonly sources: Omit<WatchObserver, "stateChanged"> = {
    reconnected: (spec, cause) => this.reconnects.inc({ ...sourceLabels(spec), cause }),
    gone: (spec) => this.gone.inc(sourceLabels(spec)),
    listed: (spec, _items, durationMs) => this.lists.observe(sourceLabels(spec), durationMs / 1000),
    received: (spec, type, bytes) => {
      const { apiVersion, kind, namespace = "" } = spec;
      this.received.add(1, apiVersion, kind, namespace, type);
      this.receivedBytes.add(bytes, apiVersion, kind, namespace);
    },
    stale: (spec) => this.watchStale.inc(sourceLabels(spec)),
    poisoned: (spec) => this.poisoned.inc(sourceLabels(spec)),
  };

  readonly lineDropped: LineDropped = (fn, reason) => this.linesDropped.add(1, fn, reason);

  readonly access: AccessObserver = {
    called: ({ function: fn, operation, result, durationMs }) =>
      this.calls.observe({ function: fn, operation, result }, durationMs / 1000),
  };

  readonly sandbox: SandboxObserver = {
    executorDied: (reason) => this.executorDeaths.inc({ reason }),
    functionKilled: (fn) => this.kills.inc({ function: fn }),
  };

  private counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
    return new Counter({ name: `watchfire_${name}`, help, labelNames, registers: [this.registry] });
  }

  /** A counter that is kept elsewhere. */
  private total<T extends string>(
    name: string,
    help: string,
    labelNames: readonly T[],
    read: (counter: Counter<T>) => Promise<void>,
  ): void {
    new Counter({
      name: `watchfire_${name}`,
      help,
      labelNames,
      registers: [this.registry],
      async collect() {
        this.reset();
        await read(this);
      },
    });
  }

  private tally<T extends string>(name: string, help: string, labelNames: readonly T[]): Tally<T> {
    return new Tally({ name: `watchfire_${name}`, help, labelNames, registers: [this.registry] });
  }

  private histogram<T extends string>(name: string, help: string, labelNames: readonly T[]): Histogram<T> {
    return new Histogram({
      name: `watchfire_${name}`,
      help,
      labelNames,
      buckets: durationBuckets,
      registers: [this.registry],
    });
  }

  private gauge<T extends string>(
    name: string,
    help: string,
    labelNames: readonly T[],
    read: (gauge: Gauge<T>) => void | Promise<void>,
  ): void {
    new Gauge({
      name: `watchfire_${name}`,
      help,
      labelNames,
      registers: [this.registry],
      async collect() {
        this.reset();
        await read(this);
      },
    });
  }
}

const sourceLabels = (spec: SourceSpec) => ({
  api_version: spec.apiVersion,
  kind: spec.kind,
  namespace: spec.namespace ?? "",
});
