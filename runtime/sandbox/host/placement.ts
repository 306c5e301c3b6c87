import type { Clock } from "../../base/clock.ts";
import type { WatchfireError } from "../../base/errors.ts";
import type { Bundle } from "../../bundle/bundle.ts";
import { scriptName } from "../../bundle/script-bundle.ts";
import type { Outcome } from "../../engine/delivery/delivery.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import { YoungMap } from "../../v8/young-map.ts";
import type { GuestOutput, HostCalls } from "../host-calls.ts";
import type { EndedEvents, EndReason, EventItem, Loaded, Returned } from "../messages.ts";
import type { StackMapper } from "../positions/stack-mapper.ts";
import { frameType } from "../wire.ts";
import { eventHead, type SandboxAttempt } from "./attempt.ts";
import type { Involvement } from "./circuit-breaker.ts";
import type { ExecutorHandle, PlacedFunction } from "./executor.ts";
import type { DeathReason } from "./executor-process.ts";
import { limitError, loadError, outcomeOf, unreadableError, unreadableLoad } from "./failure.ts";
import type { UpFrame } from "./frames.ts";
import { GuestCalls } from "./guest-calls.ts";
import { GuestReports, type LateFault } from "./guest-reports.ts";
import type { RunOutput } from "./run-output.ts";

/** One version of a function, with all that is needed to run it on any executor. */
export interface FunctionVersion {
  readonly manifest: Pick<FunctionManifest, "name" | "resources"> &
    Partial<Pick<FunctionManifest, "isolation" | "trustGroup" | "file">> & {
      /** Default: as many as an isolate holds. */
      readonly delivery?: Pick<FunctionManifest["delivery"], "concurrency"> &
        Partial<Pick<FunctionManifest["delivery"], "mode">>;
    };
  /** Key of the function in the sandbox. One function may be loaded several times. */
  readonly instance: string;
  readonly bundle: Bundle;
  readonly env: Readonly<Record<string, string>>;
  readonly mapper: StackMapper;
  /** Mistakes already logged, which are not logged again. */
  readonly reported: Set<LateFault>;
}

/** Services that handle guests' calls and output. */
export interface Services {
  readonly hostCalls: HostCalls;
  readonly output: GuestOutput;
  readonly clock: Clock;
}

/** Callbacks to the function that a placement belongs to. */
export interface PlacementListener {
  /** Its executor died or (`closed`) was closed. */
  lost(placement: Placement, involvement: Involvement, reason: DeathReason): void;
  /** Its executor accepts attempts again. */
  room(): void;
  /** Attempts given back on recall: they had been sent and will not begin. */
  returned(attempts: readonly SandboxAttempt[]): void;
}

/** Milliseconds beyond every deadline after which an executor is considered hostile. */
const overdueMs = 10_000;

/** Maximum bytes of events in one frame, unless a single event is larger: far below a frame's limit. */
const frameBytes = 16 * 2 ** 20;

/** Number of isolates of a function with `isolation: Event`. Each holds one event. */
const freshIsolates = 4;

/** Maximum number of events that an isolate holds at once. */
const mostInside = 256;

/** Metadata position of a body that did not come unchanged from the API server. */
const unknown = { at: -1, end: -1 } as const;

/** Thrown for a message that no guest can send. The executor is killed for it. */
class Breach extends Error {}

/** A version of a function on an executor, with its attempts there. */
export class Placement implements PlacedFunction {
  private readonly executor: ExecutorHandle;
  private readonly version: FunctionVersion;
  private readonly clock: Clock;
  private readonly listener: PlacementListener;
  private readonly functionId: number;
  private readonly calls: GuestCalls;
  private readonly words: GuestReports;
  private readonly attempts = new YoungMap<number, SandboxAttempt>();
  /** For each realm's last entry: the events that were announced for the first time. */
  private readonly fresh = new YoungMap<number, readonly number[]>();
  /** For each realm's last entry: all of its events. */
  private readonly entries = new YoungMap<number, readonly number[]>();
  private readonly output: GuestOutput;
  private readonly sentAt: number;
  private lastNo = 0;
  /** When its last attempt ended. */
  private endedAt = 0;
  /** Number of recalls that were sent and not answered. */
  private recalls = 0;
  private unloading = false;
  private gone = false;
  private settleLoad: { resolve: () => void; reject: (error: WatchfireError | undefined) => void } | undefined;
  /** Rejects with the error if the code cannot be loaded, or with `undefined` if the executor died of something else. */
  readonly loaded: Promise<void>;

  /** `solo`: number of events to run one at a time first. */
  constructor(
    executor: ExecutorHandle,
    version: FunctionVersion,
    services: Services,
    solo: number,
    listener: PlacementListener,
  ) {
    this.executor = executor;
    this.version = version;
    this.clock = services.clock;
    this.output = services.output;
    this.listener = listener;
    this.sentAt = services.clock.monotonic();
    this.loaded = new Promise((resolve, reject) => {
      this.settleLoad = { resolve, reject };
    });
    this.functionId = executor.add(this);
    const { mapper, reported } = version;
    const unreadable = (no: number, fault: unknown) => this.unreadable(no, fault);
    const speaker = { function: this.function, mapper, reported, isGone: () => this.gone };
    this.words = new GuestReports(speaker, services.output, unreadable);
    this.calls = new GuestCalls({
      executor,
      functionId: this.functionId,
      hostCalls: services.hostCalls,
      isGone: () => this.gone,
      unheard: (caller, fields) => this.words.unheard(caller, fields),
      unreadable,
    });
    const { delivery, isolation = "Handler", name, resources } = version.manifest;
    executor.send({
      type: frameType.load,
      header: {
        functionId: this.functionId,
        name,
        scriptName: scriptName(name),
        memoryMb: Math.max(8, Math.ceil(resources.memoryBytes / 2 ** 20)),
        cpuPerEventMs: resources.cpuPerEventMs,
        isolation,
        refused: delivery?.mode === "Reconcile" ? "events" : "keys",
        isolates: this.isolates,
        concurrency: this.concurrency,
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

  /** Maximum number of its events that have begun and not ended. */
  get concurrency(): number {
    return this.version.manifest.delivery?.concurrency ?? mostInside;
  }

  /** The number that identifies its executor in the records of a death. */
  get executorNumber(): number {
    return this.executor.number;
  }

  /** Number of attempts on the executor. */
  get size(): number {
    return this.attempts.size;
  }

  /** Whether its executor has ended, is about to, or no longer has it loaded. */
  get isGone(): boolean {
    return this.gone;
  }

  /** How many attempts may be sent now. 0 if its executor is about to end: they wait for the next one. */
  get room(): number {
    if (this.executor.isDead || this.executor.isFull) return 0;
    return this.executor.isAhead ? Math.max(0, this.concurrency - this.size) : Number.POSITIVE_INFINITY;
  }

  /** When its code was sent, in monotonic milliseconds, while the executor has not reported the result; else `undefined`. */
  get loadingSince(): number | undefined {
    return this.settleLoad ? this.sentAt : undefined;
  }

  /**
   * Whether an attempt is so late that the executor, which should have ended it, must be hostile. Attempts ahead of it may have
   * used their full time first, one by one.
   */
  isOverdue(now: number): boolean {
    // Attempts queued behind it do not run before it.
    const ahead = Math.min(this.size, this.concurrency);
    for (const { enteredAt, sentAt, delivery } of this.attempts.values()) {
      const since = enteredAt ?? Math.max(sentAt, this.endedAt);
      return now - since > delivery.timeoutMs * (ahead + 1) + overdueMs;
    }
    return false;
  }

  /** Sends attempts, as many per frame as fit. */
  run(attempts: readonly SandboxAttempt[]): void {
    let items: EventItem[] = [];
    let segments: Buffer[] = [];
    let bytes = 0;
    const send = () => {
      if (items.length > 0)
        this.executor.send({ type: frameType.events, header: { functionId: this.functionId, items }, segments });
      [items, segments, bytes] = [[], [], 0];
    };
    const now = this.clock.monotonic();
    for (const attempt of attempts) {
      const no = ++this.lastNo;
      this.attempts.set(no, attempt);
      attempt.sentAt = now;
      const head = eventHead(attempt);
      const { body, oldBody, timeoutMs, metadata } = attempt.delivery;
      const length = head.length + body.length + (oldBody?.length ?? 0);
      if (bytes + length > frameBytes) send();
      bytes += length;
      this.waits(attempt);
      const { at, end } = metadata ?? unknown;
      items.push([no, timeoutMs, head.length, body.length, oldBody ? oldBody.length : -1, at, end]);
      segments.push(head, body);
      if (oldBody) segments.push(oldBody);
    }
    send();
  }

  /** Asks the executor to give back attempts that have not begun. `forGood`: the engine wants them back. */
  recall(forGood = false): void {
    if (forGood) for (const attempt of this.attempts.values()) attempt.isRecalled = true;
    if (this.gone || this.attempts.size === 0) return;
    this.recalls++;
    this.executor.send({ type: frameType.recall, header: { functionId: this.functionId } });
  }

  /** Leaves the executor once the attempts that have begun have ended. The others are given back. */
  unload(): void {
    if (!this.unloading) this.recall();
    this.unloading = true;
    if (this.gone || this.attempts.size > 0) return;
    this.gone = true;
    this.executor.remove(this.functionId);
  }

  /** Interrupts every attempt, so that it runs again. */
  interrupt(): void {
    for (const no of [...this.attempts.keys()]) this.take(no)?.end({ type: "interrupted" });
  }

  frame(frame: UpFrame): void {
    try {
      if (frame.type === frameType.entering) this.entered(frame.realm, frame.events);
      else if (frame.type === frameType.drained) this.drained(frame);
      else if (frame.type === frameType.asking) this.asked(frame);
      else if (frame.type === frameType.ended) this.ended(frame);
      else if (frame.type === frameType.left) this.forget(frame.realm);
      else if (frame.type === frameType.returned) this.returned(frame);
      else if (frame.type === frameType.loaded) this.hasLoaded(frame);
    } catch (error) {
      if (!(error instanceof Breach)) throw error;
      this.executor.kill("breach", error.message, this.functionId);
    }
  }

  /** Its executor accepts data again. */
  roomAgain(): void {
    this.calls.proceed();
    this.listener.room();
  }

  lost(involvement: Involvement, reason: DeathReason, inside: readonly number[]): void {
    // A doomed executor lets the others finish. Attempts that did not are interrupted at its death.
    if (this.gone) {
      this.interrupt();
      return;
    }
    const isCharged = involvement === "culprit" || involvement === "proven";
    const ended: EndReason = reason === "memory" || reason === "stuck" ? "memory" : "killed";
    if (isCharged) {
      if (inside.length === 0) this.failLoad({ reason: ended, name: "", message: "", stack: "" });
      else this.settle((load) => load.reject(undefined));
      // With several inside, the one at fault is unknown: they run again one by one.
      if (inside.length === 1) this.charge(inside[0] as number, ended, "");
      else for (const no of inside) this.take(no)?.end({ type: "interrupted" });
    } else this.settle((load) => load.reject(undefined));
    if (reason !== "stuck" || isCharged) this.interrupt();
    else this.recall();
    this.gone = true;
    this.listener.lost(this, involvement, reason);
  }

  private hasLoaded({ failure }: Loaded): void {
    if (!this.settleLoad) throw new Breach("it says twice how a function loaded");
    if (failure) {
      this.gone = true;
      this.executor.remove(this.functionId);
      this.failLoad(failure);
    } else this.settle((load) => load.resolve());
  }

  private settle(how: (load: NonNullable<Placement["settleLoad"]>) => void): void {
    if (this.settleLoad) how(this.settleLoad);
    this.settleLoad = undefined;
  }

  private entered(realm: number, events: readonly number[]): void {
    const now = this.clock.monotonic();
    const fresh: number[] = [];
    for (const no of events) {
      const attempt = this.known(no);
      if (!attempt?.entered(now)) continue;
      this.waitsNoMore(attempt);
      // The first event begins, unless others were entered before it. The others begin when those before them have ended, or
      // wait.
      if (no === events[0]) attempt.begun();
      fresh.push(no);
    }
    this.entries.set(realm, events);
    if (fresh.length > 0) this.fresh.set(realm, fresh);
  }

  /** Handles an entry's end: of the events announced first for it, the last `count` have not begun. */
  private left(realm: number, count: number): void {
    const fresh = this.fresh.get(realm) ?? [];
    this.fresh.delete(realm);
    const attempts = fresh.map((no) => this.attempts.get(no));
    const left = count === 0 ? [] : attempts.splice(-count);
    if (left.length < count || left.some((attempt) => attempt?.hasBegun))
      throw new Breach("it leaves what it had begun");
    for (const attempt of attempts) attempt?.begun();
    for (const attempt of left) if (attempt) this.waitsAgain(attempt);
    // They were inside when they were recalled.
    if (left.some((attempt) => this.unloading || attempt?.isRecalled)) this.recall();
  }

  private waitsAgain(attempt: SandboxAttempt): void {
    attempt.left();
    this.waits(attempt);
  }

  private waits(attempt: SandboxAttempt): void {
    const { body, oldBody } = attempt.delivery;
    attempt.waitingBytes = body.length + (oldBody?.length ?? 0);
    this.executor.waits(attempt.waitingBytes);
  }

  private waitsNoMore(attempt: SandboxAttempt): void {
    if (attempt.waitingBytes === 0) return;
    this.executor.waits(-attempt.waitingBytes);
    attempt.waitingBytes = 0;
  }

  private returned({ events }: Returned): void {
    if (this.recalls === 0) throw new Breach("it returns something that was not requested");
    this.recalls--;
    const hasBegun = (no: number) => this.known(no)?.enteredAt !== undefined;
    if (events.some(hasBegun)) throw new Breach("it gives back what it had begun");
    this.listener.returned(events.flatMap((no) => this.take(no) ?? []));
  }

  /** Handles a blocking call. Apart from the blocking it is an ordinary call. */
  private asked({ realm, ...call }: Extract<UpFrame, { type: typeof frameType.asking }>): void {
    const isOver = !this.known(call.no);
    if (isOver) this.calls.refuse(realm, call.call);
    else this.heed(call.no, "more calls than a guest can make", (one) => this.calls.make(realm, call, one));
  }

  private forget(realm: number): void {
    this.fresh.delete(realm);
    this.entries.delete(realm);
  }

  private ended({ realm, charged, interrupted, reason, stack }: EndedEvents): void {
    this.forget(realm);
    for (const no of charged) if (this.known(no)) this.charge(no, reason, stack);
    for (const no of interrupted) if (this.known(no)) this.take(no)?.end({ type: "interrupted" });
  }

  /** Handles a guest's output, which can be anything. A fault in reading it fails only the attempt it belongs to. */
  private drained({ realm, outbox, used }: Extract<UpFrame, { type: typeof frameType.drained }>): void {
    const { words } = this;
    const { done, calls, logs, metrics, strays, left }: RunOutput = outbox;
    this.left(realm, left);
    const entry = this.entries.get(realm);
    if (used && entry) {
      const [cpuUs, heapBytes] = used;
      for (let index = 0; index < entry.length - left; index++) {
        const delivery = this.attempts.get(entry[index] as number)?.delivery;
        if (!delivery) continue;
        delivery.cpuMs = (delivery.cpuMs ?? 0) + cpuUs / 1000;
        if (heapBytes > 0) delivery.heapBytes = heapBytes;
      }
    }
    this.entries.delete(realm);
    for (const line of logs)
      this.heed(line.no, "more lines of log than a guest can write", (one) => words.log(one, line));
    for (const metric of metrics)
      this.heed(metric.no, "more metrics than a guest can send", (one) => words.count(one, metric));
    for (const call of calls)
      this.heed(call.no, "more calls than a guest can make", (one) => this.calls.make(realm, call, one));
    for (const error of strays) {
      try {
        words.stray(error);
      } catch {
        // No attempt is left that a fault could be reported to.
      }
    }
    for (const entry of done) {
      if (this.begun(entry.no)) this.end(entry.no, (attempt) => this.outcomeOf(attempt, entry));
    }
  }

  /** Processes a guest's message if its attempt still runs. `read` returns whether an honest guest can have sent it. */
  private heed(no: number, excess: string, read: (attempt: SandboxAttempt) => boolean): void {
    const attempt = this.begun(no);
    if (!attempt) return;
    let isPossible: boolean;
    try {
      isPossible = read(attempt);
    } catch (fault) {
      this.unreadable(no, fault);
      return;
    }
    if (isPossible) return;
    // This event's code has taken over the executor.
    this.charge(no, "killed", "");
    throw new Breach(excess);
  }

  /** Returns the attempt of that number, or `undefined` if it has ended. Throws a Breach for a number that was never sent. */
  private known(no: number): SandboxAttempt | undefined {
    const attempt = this.attempts.get(no);
    if (!attempt && (no === 0 || no > this.lastNo)) throw new Breach(`it speaks of event ${no}, which it never had`);
    return attempt;
  }

  /** Returns the same, and throws a Breach if the attempt has not been entered. */
  private begun(no: number): SandboxAttempt | undefined {
    const attempt = this.known(no);
    if (attempt && attempt.enteredAt === undefined) throw new Breach(`it speaks for event ${no}, which has not begun`);
    return attempt;
  }

  private unreadable(no: number, fault: unknown): void {
    this.end(no, () => {
      throw fault;
    });
  }

  /** Ends an attempt with the outcome that `read` returns. If it throws, the attempt fails with that fault. */
  private end(no: number, read: (attempt: SandboxAttempt) => Outcome | Promise<Outcome>): void {
    const attempt = this.take(no);
    if (!attempt) return;
    const durationMs = this.durationOf(attempt);
    const failed = (fault: unknown): Outcome => ({ type: "failed", error: unreadableError(fault), durationMs });
    let outcome: Outcome | Promise<Outcome>;
    try {
      outcome = read(attempt);
    } catch (fault) {
      outcome = failed(fault);
    }
    const known = outcome instanceof Promise ? outcome.catch(failed) : outcome;
    attempt.end(
      known,
      attempt.written?.then(() => known, failed),
    );
  }

  private failLoad(failure: NonNullable<Loaded["failure"]>): void {
    const { mapper, manifest } = this.version;
    // The executor is not needed any more: the rest is work of the parent.
    this.settle((load) => loadError(failure, mapper, manifest).catch(unreadableLoad).then(load.reject));
  }

  private outcomeOf(attempt: SandboxAttempt, done: RunOutput["done"][number]): Outcome | Promise<Outcome> {
    const { mapper, manifest } = this.version;
    const length = done.message.length + done.stack.length;
    if (length > 0) this.output.admits?.(attempt.delivery, "error", length);
    return outcomeOf(done, mapper, manifest.resources, attempt.delivery.timeoutMs, this.durationOf(attempt));
  }

  /** Milliseconds since its first entry, or since its sending if no entry was announced. */
  private durationOf({ enteredAt, sentAt }: SandboxAttempt): number {
    return this.clock.monotonic() - (enteredAt ?? sentAt);
  }

  private charge(no: number, reason: EndReason, stack: string): void {
    const { mapper, manifest } = this.version;
    const said = { name: "", message: "", stack };
    this.end(no, async (attempt) => {
      const durationMs = this.durationOf(attempt);
      const error = await limitError(reason, said, mapper, manifest.resources, attempt.delivery.timeoutMs);
      return { type: "failed", error, durationMs };
    });
  }

  private take(no: number): SandboxAttempt | undefined {
    const attempt = this.attempts.get(no);
    if (!attempt) return undefined;
    this.attempts.delete(no);
    this.endedAt = this.clock.monotonic();
    this.waitsNoMore(attempt);
    if (this.unloading) this.unload();
    return attempt;
  }
}
