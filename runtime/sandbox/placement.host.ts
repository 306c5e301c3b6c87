import type { Bundle } from "../bundle/bundle.ts";
import { scriptName } from "../bundle/bundle-function.ts";
import type { Clock } from "../clock.ts";
import type { Outcome } from "../dispatch/delivery.ts";
import type { WatchfireError } from "../errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { type Attempt, eventSegments } from "./attempt.host.ts";
import { misshapen, shapeFault } from "./call-shape.host.ts";
import type { Executor, TenantListener, Verdict } from "./executor.host.ts";
import type { DeathReason } from "./executor-process.host.ts";
import { handlerError, limitError, loadError, unreadableError, unreadableLoad } from "./failure.host.ts";
import type { UpFrame } from "./frames.host.ts";
import type { Caller, GuestOutput, HostCalls } from "./host-calls.ts";
import type { EndReason, EventItem, Loaded } from "./messages.ts";
import {
  clean,
  cleanObject,
  type Done,
  type GuestCall,
  type GuestError,
  type GuestLog,
  type GuestMetric,
  type Outbox,
} from "./outbox.host.ts";
import type { StackMapper } from "./stack.host.ts";
import { frameType } from "./wire.ts";

/** One version of a function: what it needs to run anywhere. */
export interface Version {
  readonly manifest: Pick<FunctionManifest, "name" | "resources"> & Partial<Pick<FunctionManifest, "isolation">>;
  readonly bundle: Bundle;
  readonly env: Readonly<Record<string, string>>;
  readonly mapper: StackMapper;
  /** What it was told of once, and is not told of again. */
  readonly told: Set<"stray" | "call">;
}

/** Those who answer what guests ask and write. */
export interface Services {
  readonly hostCalls: HostCalls;
  readonly output: GuestOutput;
  readonly clock: Clock;
}

/** Calls of one attempt that may wait at once: twice the guest's own limit, beyond which the guest is not itself. */
const maxCalls = 128;

/** Characters that one attempt may log, and metrics that it may send: twice the guest's own limits. */
const maxLogged = 128 * 1024;
const maxMetrics = 2000;

/** Milliseconds beyond every deadline after which an executor is taken for hostile. */
const overdueMs = 10_000;

/** Bytes of events or of replies that travel in one frame, unless a single one is larger: far below what a frame may have. */
const frameBytes = 16 * 2 ** 20;

/** Isolates of a function whose every event gets a fresh context: each holds one event. */
const freshIsolates = 4;

/** How a placement came to its end. */
export type Loss = (placement: Placement, verdict: Verdict) => void;

/** A version of a function on an executor, and the attempts that are there. */
export class Placement implements TenantListener {
  private readonly executor: Executor;
  private readonly version: Version;
  private readonly services: Services;
  private readonly onLost: Loss;
  private readonly tenant: number;
  private readonly attempts = new Map<number, Attempt>();
  private replies: { item: [number, number, 0 | 1, number]; text: Buffer }[] = [];
  private lastNo = 0;
  private unloading = false;
  private gone = false;
  private settleLoad: { resolve: () => void; reject: (error: WatchfireError | undefined) => void } | undefined;
  /** Rejects with the reason why the code cannot be loaded; with undefined where the executor died of something else. */
  readonly loaded: Promise<void>;

  constructor(executor: Executor, version: Version, services: Services, solo: number, onLost: Loss) {
    this.executor = executor;
    this.version = version;
    this.services = services;
    this.onLost = onLost;
    this.loaded = new Promise((resolve, reject) => {
      this.settleLoad = { resolve, reject };
    });
    this.tenant = executor.add(this);
    const { name, resources } = version.manifest;
    executor.send({
      type: frameType.load,
      header: {
        tenant: this.tenant,
        name,
        scriptName: scriptName(name),
        memoryMb: Math.max(8, Math.ceil(resources.memoryBytes / 2 ** 20)),
        cpuPerEventMs: resources.cpuPerEventMs,
        isolation: version.manifest.isolation ?? "Handler",
        isolates: this.isolates,
        env: JSON.stringify(version.env),
        solo,
      },
      segments: [Buffer.from(version.bundle.script)],
    });
  }

  get function(): string {
    return this.version.manifest.name;
  }

  get memoryBytes(): number {
    return this.version.manifest.resources.memoryBytes;
  }

  get isolates(): number {
    return this.version.manifest.isolation === "Event" ? freshIsolates : 1;
  }

  /** Attempts that are there. */
  get size(): number {
    return this.attempts.size;
  }

  /**
   * Whether an attempt is so late that the executor, which should have ended it, cannot be itself. Those ahead of it may
   * have used their time first, one by one.
   */
  isOverdue(now: number): boolean {
    for (const { sentAt, delivery } of this.attempts.values()) {
      return now - sentAt > delivery.timeoutMs * (this.attempts.size + 1) + overdueMs;
    }
    return false;
  }

  /** Sends attempts, together as far as a frame holds them. */
  run(attempts: readonly Attempt[]): void {
    let items: EventItem[] = [];
    let segments: Buffer[] = [];
    let bytes = 0;
    const send = () => {
      if (items.length > 0)
        this.executor.send({ type: frameType.events, header: { tenant: this.tenant, items }, segments });
      [items, segments, bytes] = [[], [], 0];
    };
    const now = this.services.clock.monotonic();
    for (const attempt of attempts) {
      const no = ++this.lastNo;
      this.attempts.set(no, attempt);
      attempt.sentAt = now;
      const event = eventSegments(attempt);
      const { oldBody, timeoutMs } = attempt.delivery;
      const length = event.length + (oldBody?.length ?? 0);
      if (bytes + length > frameBytes) send();
      bytes += length;
      items.push([no, timeoutMs, event.length, oldBody ? oldBody.length : -1]);
      segments.push(...event.segments);
      if (oldBody) segments.push(oldBody);
    }
    send();
  }

  /** Leaves the executor once the attempts that are there have ended. */
  unload(): void {
    this.unloading = true;
    if (this.gone || this.attempts.size > 0) return;
    this.gone = true;
    this.executor.remove(this.tenant);
  }

  /** Ends every attempt that is there, to be run again. */
  interrupt(): void {
    for (const no of [...this.attempts.keys()]) this.take(no)?.end({ type: "interrupted" });
  }

  frame(frame: UpFrame): void {
    if (frame.type === frameType.entering) this.entered(frame.events);
    else if (frame.type === frameType.drained) this.drained(frame.realm, frame.outbox);
    else if (frame.type === frameType.ended) {
      for (const no of frame.charged) this.charge(no, frame.reason, frame.stack);
      for (const no of frame.interrupted) this.take(no)?.end({ type: "interrupted" });
    } else if (frame.type === frameType.loaded) {
      if (frame.failure) {
        this.gone = true;
        this.executor.remove(this.tenant);
        this.failLoad(frame.failure);
      } else this.settleLoad?.resolve();
    }
  }

  lost(verdict: Verdict, reason: DeathReason, inside: readonly number[]): void {
    // A doomed executor lets the others finish; what it had not is told at its death.
    if (this.gone) {
      this.interrupt();
      return;
    }
    const ended: EndReason = reason === "memory" || reason === "stuck" ? "memory" : "killed";
    if (verdict === "culprit") {
      if (inside.length === 0) this.failLoad({ reason: ended, name: "", message: "", stack: "" });
      else this.settleLoad?.reject(undefined);
      // With several inside nobody can tell whose code it was: they run again one by one.
      if (inside.length === 1) this.charge(inside[0] as number, ended, "");
      else for (const no of inside) this.take(no)?.end({ type: "interrupted" });
    } else this.settleLoad?.reject(undefined);
    if (reason !== "stuck" || verdict === "culprit") this.interrupt();
    this.gone = true;
    this.onLost(this, verdict);
  }

  private entered(events: readonly number[]): void {
    const now = this.services.clock.monotonic();
    for (const no of events) {
      const attempt = this.attempts.get(no);
      if (attempt) attempt.enteredAt ??= now;
    }
  }

  /** What a guest says can be anything: a fault in reading it fails the attempt whose word it is, and nothing else. */
  private drained(realm: number, { done, calls, logs, metrics, strays }: Outbox): void {
    for (const line of logs) this.read(line.no, () => this.log(line));
    for (const metric of metrics) this.read(metric.no, () => this.count(metric));
    // Of no attempt that is left: a fault in it is nobody's.
    for (const error of strays) this.read(0, () => this.stray(error));
    for (const call of calls) this.call(realm, call).catch((fault) => this.unreadable(call.no, fault));
    for (const entry of done) this.end(entry.no, (attempt) => this.outcomeOf(attempt, entry));
  }

  private read(no: number, how: () => void): void {
    try {
      how();
    } catch (fault) {
      this.unreadable(no, fault);
    }
  }

  private unreadable(no: number, fault: unknown): void {
    this.end(no, () => {
      throw fault;
    });
  }

  private log({ no, level, message, fields }: GuestLog): void {
    const attempt = this.attempts.get(no);
    if (!attempt) return;
    attempt.logged += message.length + fields.length;
    if (attempt.logged > maxLogged) this.breach(no, "more lines of log than a guest can write");
    else {
      const { mapper } = this.version;
      const shown = cleanObject(mapper.mapJson(fields));
      this.services.output.log(attempt.caller, level, clean(mapper.map(message)), shown);
    }
  }

  private count({ no, type, name, value, labels }: GuestMetric): void {
    const attempt = this.attempts.get(no);
    if (!attempt) return;
    if (++attempt.metrics > maxMetrics) this.breach(no, "more metrics than a guest can send");
    else this.services.output.metric(attempt.caller, type, clean(name), value, textsOf(labels));
  }

  private stray(said: GuestError): void {
    const error = handlerError(said, this.version.mapper);
    const message = "an error that no handler is left for: its own had returned";
    this.tellOnce("stray", nobody(this.function), message, { error });
  }

  /** Ends the executor for what no guest can say in an attempt's name: it has been taken over by that one. */
  private breach(no: number, what: string): void {
    this.charge(no, "killed", "");
    this.executor.kill("breach", what, this.tenant);
  }

  /** Ends an attempt, with what is read of its guest's words. */
  private end(no: number, outcomeOf: (attempt: Attempt) => Outcome): void {
    const attempt = this.take(no);
    if (!attempt) return;
    let outcome: Outcome;
    try {
      outcome = outcomeOf(attempt);
    } catch (fault) {
      outcome = { type: "failed", error: unreadableError(fault), durationMs: this.durationOf(attempt) };
    }
    attempt.end(outcome);
  }

  private failLoad(failure: NonNullable<Loaded["failure"]>): void {
    const { mapper, manifest } = this.version;
    let error: WatchfireError;
    try {
      error = loadError(failure, mapper, manifest.resources);
    } catch (fault) {
      error = unreadableLoad(fault);
    }
    this.settleLoad?.reject(error);
  }

  private outcomeOf(attempt: Attempt, done: Done): Outcome {
    const durationMs = this.durationOf(attempt);
    const { mapper } = this.version;
    switch (done.kind) {
      case "ok":
        return { type: "ok", durationMs };
      case "failed": {
        const retry = done.retryAfterMs === undefined ? {} : { retryAfterMs: done.retryAfterMs };
        return { type: "failed", error: handlerError(done, mapper), ...retry, durationMs };
      }
      case "permanent":
        return { type: "permanent", error: handlerError(done, mapper), durationMs };
      case "unreadable":
        return {
          type: "permanent",
          error: { ...handlerError(done, mapper), code: "WF_SANDBOX_BAD_EVENT" },
          durationMs,
        };
      default:
        return { type: "failed", error: this.limit(attempt, done.kind, done), durationMs };
    }
  }

  /** From its code's first entry; where that was never told, from its sending. */
  private durationOf({ enteredAt, sentAt }: Attempt): number {
    return this.services.clock.monotonic() - (enteredAt ?? sentAt);
  }

  private charge(no: number, reason: EndReason, stack: string): void {
    this.end(no, (attempt) => ({
      type: "failed",
      error: this.limit(attempt, reason, { name: "", message: "", stack }),
      durationMs: this.durationOf(attempt),
    }));
  }

  private limit(attempt: Attempt, reason: EndReason, said: GuestError) {
    const { mapper, manifest } = this.version;
    return limitError(reason, said, mapper, manifest.resources, attempt.delivery.timeoutMs);
  }

  private take(no: number): Attempt | undefined {
    const attempt = this.attempts.get(no);
    if (!attempt) return undefined;
    this.attempts.delete(no);
    if (this.unloading) this.unload();
    return attempt;
  }

  /** In whose name a call is made is settled here, by whose event it came with; the message has no say in it. */
  private async call(realm: number, { call, no, operation, args }: GuestCall): Promise<void> {
    const attempt = this.attempts.get(no);
    if (!attempt) return;
    if (++attempt.calls > maxCalls) {
      this.breach(no, "more calls than a guest can make");
      return;
    }
    const fault = shapeFault(args);
    const reply = fault
      ? misshapen(operation, fault)
      : await this.services.hostCalls.call(attempt.caller, operation, args, attempt.signal);
    attempt.calls--;
    if (attempt.isDone && !reply.ok) {
      const { type, message } = reply.error;
      const fields = { operation, error: `${type}: ${message}`, hint: "await the call" };
      this.tellOnce("call", attempt.caller, "a call that its handler did not wait for came to nothing", fields);
    }
    if (attempt.isOver || this.gone) return;
    const text = Buffer.from(reply.ok ? reply.json : JSON.stringify(reply.error));
    if (this.replies.length === 0) setImmediate(() => this.sendReplies());
    this.replies.push({ item: [realm, call, reply.ok ? 1 : 0, text.length], text });
  }

  /** A warning of a lapse after a handler's return, for the first of its kind: a busy function would repeat it for ever. */
  private tellOnce(kind: "stray" | "call", caller: Caller, message: string, fields: Record<string, unknown>): void {
    if (this.version.told.has(kind)) return;
    this.version.told.add(kind);
    this.services.output.log(caller, "warn", message, { ...fields, further: "not logged until the code changes" });
  }

  private sendReplies(): void {
    let count = 1;
    for (let bytes = this.replies[0]?.text.length ?? 0; count < this.replies.length; count++) {
      bytes += this.replies[count]?.text.length ?? 0;
      if (bytes > frameBytes) break;
    }
    const replies = this.replies.splice(0, count);
    if (this.replies.length > 0) setImmediate(() => this.sendReplies());
    this.executor.send({
      type: frameType.replies,
      header: { tenant: this.tenant, items: replies.map((reply) => reply.item) },
      segments: replies.map((reply) => reply.text),
    });
  }
}

/** A metric's labels: text alone. What is asked for its text could throw, and is not. */
const textsOf = (labels: string): Record<string, string> =>
  Object.fromEntries(Object.entries(cleanObject(labels)).map(([key, label]) => [key, textOf(label)]));

const textOf = (label: unknown): string => (typeof label === "object" && label !== null ? "[object]" : String(label));

/** In whose name a line is that belongs to a function, and to no event of it. */
const nobody = (name: string): Caller => ({
  function: name,
  trigger: "",
  id: "",
  object: { apiVersion: "", kind: "", namespace: "", name: "", uid: "" },
  attempt: 0,
});
