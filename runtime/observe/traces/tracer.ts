import { hash, randomBytes } from "node:crypto";
import { type CallSpan, type ListedCall, mostListedCalls } from "../../access/observer.ts";
import type { Clock } from "../../base/clock.ts";
import { cut } from "../../base/wording.ts";
import type { Delivery, DeliveryListener, Outcome, Runner } from "../../engine/delivery/delivery.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import type { Caller } from "../../sandbox/host-calls.ts";
import { runKey, type TraceOf } from "../run-log.ts";
import { type EndedSpan, mostText, type SpanExporter } from "./exporter.ts";

/** Events of which the trace is known between two attempts, at most. The next attempt of another begins a second span of the event. */
const mostOpen = 10_000;

/** An event whose trace is sampled. */
interface OpenTrace {
  readonly trace: string;
  /** The id of the span of the event. */
  readonly root: string;
  /** When its first attempt of this process began to wait, in epoch milliseconds. */
  readonly begin: number;
  /** The same of the attempt that runs or waits. */
  since: number;
  /** The id of the span of the attempt that runs. */
  attempt: string;
  beganAt: number;
  /** How many calls of the attempt have spans. */
  calls: number;
}

interface TracerParts {
  readonly exporter: Pick<SpanExporter, "add">;
  /** The share of traces that are sampled, from 0 to 1. */
  readonly ratio: number;
  /** Distinguishes this runtime's traces from those of others with the same events. The same after a restart. */
  readonly runtime: string;
  readonly clock: Clock;
  /** Removes the values of a function's Secrets. */
  readonly redact: (functionName: string, text: string) => string;
  readonly manifestOf: (functionName: string) => Pick<FunctionManifest, "delivery"> | undefined;
}

/**
 * Makes the spans of events: one from an event's arrival to its last attempt's end, with children for waiting, attempts and calls. The
 * trace's id is a hash of the event's id, so that all attempts, of other processes too, are in one trace and agree on whether it is
 * sampled, and nothing is stored.
 */
export class Tracer {
  private readonly parts: TracerParts;
  private readonly open = new Map<string, OpenTrace>();

  constructor(parts: TracerParts) {
    this.parts = parts;
  }

  /**
   * Wraps a runner so that its attempts have spans. Only what was sampled is wrapped any further.
   * @param runner outcomes that it reports are redacted
   */
  traced(runner: Runner): Runner {
    return {
      recall: (functionName) => runner.recall(functionName),
      give: (delivery, listener) => {
        const open = this.beginning(delivery);
        runner.give(delivery, open ? this.listening(delivery, open, listener) : listener);
      },
    };
  }

  /** Returns the trace's id of an attempt that runs; `undefined` if it is not sampled. */
  readonly traceOf: TraceOf = (attempt) => this.open.get(runKey(attempt))?.trace;

  /** Begins the span of a call. Without a sampled attempt it only says to the callee that the trace is not sampled. */
  readonly spanOf = (caller: Caller): CallSpan => {
    const open = this.open.get(runKey(caller));
    const id = spanId();
    if (!open) return { traceparent: `00-${this.traceId(caller)}-${id}-00`, ended: () => {} };
    const { trace, attempt: parent } = open;
    return {
      traceparent: `00-${trace}-${id}-01`,
      ended: (call) => {
        if (open.attempt === parent && ++open.calls > mostListedCalls) return;
        this.parts.exporter.add(this.callSpan(caller, call, { trace, id, parent }));
      },
    };
  };

  private listening(delivery: Delivery, open: OpenTrace, listener: DeliveryListener): DeliveryListener {
    return {
      begins: () => {
        open.beganAt = this.parts.clock.now();
        listener.begins();
      },
      ended: (outcome) => {
        // First the trace: the listener may submit the next attempt.
        this.end(delivery, open, outcome);
        listener.ended(outcome);
      },
    };
  }

  /** Ends the span of an attempt, and that of the event if there will be no other attempt. */
  private end(delivery: Delivery, open: OpenTrace, outcome: Outcome): void {
    const key = runKey(delivery);
    if (outcome.type === "unbegun") {
      if (open.since === open.begin) this.open.delete(key);
      return;
    }
    const { exporter, clock } = this.parts;
    const { trace, root } = open;
    const now = clock.now();
    const begin = open.beganAt === 0 ? now : open.beganAt;
    // The stack of an error is mapped after the end, which takes some milliseconds.
    const end = "durationMs" in outcome && open.beganAt > 0 ? Math.min(now, begin + outcome.durationMs) : now;
    const failure = failureOf(outcome);
    const shared = { trace, attributes: attributesOf(delivery) };
    exporter.add({
      ...shared,
      id: spanId(),
      parent: root,
      name: "waiting",
      kind: "internal",
      begin: open.since,
      end: begin,
    });
    const attributes = {
      ...shared.attributes,
      "watchfire.attempt": delivery.attempt,
      "watchfire.outcome": outcome.type,
      "error.type": "error" in outcome ? (outcome.error.code ?? outcome.error.name) : undefined,
    };
    const attempt = { name: "attempt", kind: "internal", begin, end, attributes, failure } as const;
    exporter.add({ trace, id: open.attempt, parent: root, ...attempt });
    if (this.isLast(delivery, outcome)) {
      const name = `event ${delivery.function}`;
      exporter.add({ trace, id: root, name, kind: "consumer", begin: open.begin, end, attributes, failure });
      this.open.delete(key);
    } else Object.assign(open, { since: end, beganAt: 0 });
  }

  private beginning(delivery: Delivery): OpenTrace | undefined {
    const key = runKey(delivery);
    let open = this.open.get(key);
    if (!open) {
      const trace = this.traceId(delivery);
      if (!this.isSampled(trace)) return undefined;
      const begin = delivery.receivedAt ?? this.parts.clock.now();
      open = { trace, root: spanId(), begin, since: begin, attempt: "", beganAt: 0, calls: 0 };
      this.open.set(key, open);
      const [oldest] = this.open.keys();
      if (this.open.size > mostOpen && oldest !== undefined) this.open.delete(oldest);
    }
    Object.assign(open, { attempt: spanId(), beganAt: 0, calls: 0 });
    return open;
  }

  /** As the ratio sampler of OpenTelemetry: by the id, so that all parts of a trace agree. */
  private isSampled(trace: string): boolean {
    return Number.parseInt(trace.slice(-12), 16) < this.parts.ratio * 2 ** 48;
  }

  private traceId({ function: name, id }: Pick<Delivery, "function" | "id">): string {
    return hash("sha256", `${this.parts.runtime}\n${name}\n${id}`).slice(0, 32);
  }

  /** Whether no other attempt follows by the function's policy. */
  private isLast({ function: name, attempt }: Delivery, { type }: Outcome): boolean {
    if (type === "ok") return true;
    if (type === "interrupted") return false;
    const delivery = this.parts.manifestOf(name)?.delivery;
    if (!delivery) return true;
    return delivery.onFailure !== "Block" && (type === "permanent" || attempt >= delivery.retry.maxAttempts);
  }

  private callSpan(
    { function: name, trigger, id: run }: Caller,
    { operation, target, result, status, at, durationMs, sent, received }: ListedCall,
    of: Pick<EndedSpan, "trace" | "id" | "parent">,
  ): EndedSpan {
    const attributes = {
      "watchfire.function": name,
      "watchfire.trigger": trigger,
      "watchfire.run": run,
      "watchfire.target": this.parts.redact(name, target),
      "watchfire.result": result,
      "http.response.status_code": status,
      "watchfire.sent": sent,
      "watchfire.received": received,
    };
    const failure = result === "ok" ? undefined : result;
    const kind = isRemote.test(operation) ? "client" : "internal";
    return { ...of, name: operation, kind, begin: at, end: at + durationMs, attributes, failure };
  }
}

/** Operations that may leave the runtime. */
const isRemote = /^(kube\.|events\.|fetch$)/;

const spanId = (): string => randomBytes(8).toString("hex");

const failureOf = (outcome: Outcome): string | undefined => {
  if (outcome.type === "interrupted") return "its executor ended";
  return "error" in outcome ? cut(outcome.error.message, mostText) : undefined;
};

function attributesOf({ function: name, trigger, id, type, causes, object, redelivered, batch }: Delivery) {
  const { apiVersion, kind, namespace, name: objectName } = object;
  return {
    "watchfire.function": name,
    "watchfire.trigger": trigger,
    "watchfire.run": id,
    "watchfire.type": causes ? "Reconcile" : type,
    "watchfire.object": `${apiVersion}/${kind} ${namespace ? `${namespace}/` : ""}${objectName}`,
    "watchfire.redelivered": redelivered || undefined,
    "watchfire.batch": batch?.length,
  };
}
