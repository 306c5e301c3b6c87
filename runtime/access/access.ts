import type { Logger } from "pino";
import type { Clock, Random } from "../base/clock.ts";
import type { LoopAccounts } from "../engine/account/loop-time.ts";
import type { ProxyEnvironment } from "../kube/proxy.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { Reads } from "../reads/reads.ts";
import type { Caller, HostCallError, HostCalls, HostReply } from "../sandbox/host-calls.ts";
import { AnswerReader } from "./answer-reader.ts";
import { isOperation, type OperationName, readArguments } from "./arguments.ts";
import { answerFromCache, type CacheOperation, isCacheOperation } from "./cache-calls.ts";
import { deadline } from "./deadline.ts";
import { EventRecorder } from "./event-recorder.ts";
import { answered, CallFailure, invalid, tooMany } from "./failure.ts";
import { Fetcher } from "./fetcher.ts";
import type { FunctionAccounts } from "./function-accounts.ts";
import { CallGate } from "./gate.ts";
import { type KindLookup, KubeCalls } from "./kube-calls.ts";
import type { AccessObserver } from "./observer.ts";
import type { OwnObjects } from "./own-objects.ts";
import { ReadingTurns } from "./reading-turns.ts";
import { RehearsedTransport, type TellUnsent } from "./rehearsal.ts";
import type { HostResolver } from "./resolver.ts";

/** What the room needs. */
export interface AccessParts {
  readonly transport: KubeTransport;
  /** Functions act under accounts of their own; without it, under the runtime's, by `transport`. */
  readonly accounts?: Pick<FunctionAccounts, "transport"> | undefined;
  readonly discovery: KindLookup;
  /** What is the runtime's own, and no function's to write. */
  readonly own: OwnObjects;
  /** On which the parent's part of calls goes. Default: on nobody's. */
  readonly time?: LoopAccounts;
  /** What functions keep in memory. Default: nothing. */
  readonly reads?: Pick<Reads, "get" | "list" | "age">;
  /** The manifests by name; read at each call, so that a reload shows at once. */
  readonly functions: Pick<ReadonlyMap<string, FunctionManifest>, "get">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly observer?: AccessObserver;
  /** Told when the API server, and not the manifest, refused a function's call. */
  readonly refused?: (functionName: string) => void;
  /** Turns host names into addresses for `ctx.fetch`; the system's by default. */
  readonly resolver?: HostResolver;
  /** Asked before a call begins and as each of its requests is written; what it gives, the guest gets instead. Default: nothing. */
  readonly withheld?: (() => HostCallError | undefined) | undefined;
  /** Networks of the cluster (CIDR) beside the private ones, which `ctx.fetch` refuses as well. */
  readonly clusterNetworks?: readonly string[];
  /** Nothing that a function writes is sent: this hears of it instead. Default: all of it is sent. */
  readonly unsent?: TellUnsent | undefined;
  /** The port of the runtime's endpoints once they listen, which `ctx.fetch` refuses on every address of this machine. */
  readonly ownPort?: () => number | undefined;
  /** The variables that name the proxies which `ctx.fetch` goes through: HTTPS_PROXY, HTTP_PROXY, NO_PROXY. Default: none. */
  readonly proxies?: ProxyEnvironment;
  readonly limits?: Partial<AccessLimits>;
}

/** How much a function may ask. */
interface AccessLimits {
  /** Bytes of one call's arguments; the API server itself takes 3 MiB (`apiserver` MaxRequestBodyBytes). Default 4 MiB. */
  readonly argumentBytes: number;
  /** Bytes of one answer. Default 16 MiB. */
  readonly answerBytes: number;
  /** Calls of one attempt. Default 10,000. */
  readonly callsPerAttempt: number;
  /** Calls of one function at once. Default 16; what comes beyond waits. */
  readonly callsAtOnce: number;
  /** Calls of one function that wait. Default 1,000; what comes beyond is refused. */
  readonly callsWaiting: number;
  /** Bytes of their arguments. Default 16 MiB; what comes beyond is refused. */
  readonly waitingBytes: number;
  /** Milliseconds for one call, once it is under way. Default 30,000. */
  readonly timeoutMs: number;
}

const defaults: AccessLimits = {
  argumentBytes: 4 * 1024 * 1024,
  answerBytes: 16 * 1024 * 1024,
  callsPerAttempt: 10_000,
  callsAtOnce: 16,
  callsWaiting: 1000,
  waitingBytes: 16 * 1024 * 1024,
  timeoutMs: 30_000,
};

/**
 * Milliseconds of the parent's time that a call takes, and that each byte of its arguments and of its answer takes. A look at what
 * is kept in memory is measured itself. 8,400 `kube.get` took 0.24 ms of CPU each, with their frames (2026-11-27).
 */
const callMs = 0.2;
const byteMs = 0.000_01;
const lookMs = 0.02;
/** The same of a call that is refused, with its frames. */
const refusedMs = 0.1;

/** Bytes of arguments that wait as text: read, they may take ten times as much memory. */
const largeBytes = 16 * 1024;

/** The parent's half of `ctx.kube`, `ctx.events` and `ctx.fetch`: checks each call against the manifest, then makes it. */
export class Access implements HostCalls {
  private readonly parts: AccessParts;
  private readonly limits: AccessLimits;
  private readonly kube: KubeCalls;
  private readonly events: EventRecorder;
  private readonly fetcher: Fetcher;
  private readonly gates = new Map<string, CallGate>();
  private readonly turns: ReadingTurns;
  /** Calls made, by the attempt's signal. */
  private readonly calls = new WeakMap<AbortSignal, number>();

  constructor(parts: AccessParts) {
    const limits = { ...defaults, ...parts.limits };
    const { answerBytes: answerLimit, timeoutMs } = limits;
    this.parts = parts;
    this.limits = limits;
    this.turns = new ReadingTurns(parts.clock);
    const { accounts, withheld } = parts;
    const lastLook = withheld && (() => objectionOf(withheld()));
    const { unsent } = parts;
    const transportOf = (functionName: string) => {
      const transport = accounts?.transport(functionName) ?? parts.transport;
      return unsent ? new RehearsedTransport(transport, functionName, unsent) : transport;
    };
    const answers = new AnswerReader();
    const ownAccounts = accounts !== undefined;
    this.kube = new KubeCalls({ ...parts, transportOf, ownAccounts, answers, answerLimit, timeoutMs, lastLook });
    this.events = new EventRecorder({ ...parts, transportOf, timeoutMs, lastLook });
    this.fetcher = new Fetcher({ ...parts, answers, lastLook });
  }

  async call(caller: Caller, operation: string, args: string, signal: AbortSignal): Promise<HostReply> {
    const { clock, observer, log } = this.parts;
    const startedAt = clock.monotonic();
    const known = isOperation(operation);
    let reply: HostReply;
    const made = { isCharged: false };
    try {
      reply = await this.answer(caller, operation, args, signal, made);
    } catch (error) {
      reply = { ok: false, error: this.errorOf(error, signal, caller) };
      if (!made.isCharged) await this.refused(caller, args.length);
    }
    const result = resultOf(reply);
    if (!reply.ok && reply.error.details?.refusedBy === "apiserver") this.parts.refused?.(caller.function);
    observer?.called({
      function: caller.function,
      operation: known ? operation : "unknown",
      result,
      durationMs: clock.monotonic() - startedAt,
    });
    log.debug(
      { function: caller.function, trigger: caller.trigger, run: caller.id, operation, result },
      "call answered",
    );
    return reply;
  }

  refused({ function: name }: Caller, length: number): Promise<void> | undefined {
    return this.admitted(name, refusedMs + length * byteMs);
  }

  /** Closes the connections of `ctx.fetch`; those to the cluster are the transport's. */
  close(): Promise<void> {
    return this.fetcher.close();
  }

  /** @param call is marked once it is on the function's account */
  private async answer(
    caller: Caller,
    operation: string,
    args: string,
    signal: AbortSignal,
    call: { isCharged: boolean },
  ): Promise<HostReply> {
    const { callsPerAttempt, argumentBytes } = this.limits;
    signal.throwIfAborted();
    const made = (this.calls.get(signal) ?? 0) + 1;
    this.calls.set(signal, made);
    if (made > callsPerAttempt) throw tooMany(`an attempt may make ${callsPerAttempt} calls`);
    if (!isOperation(operation)) throw invalid("the runtime knows no such operation");
    const bytes = Buffer.byteLength(args);
    if (bytes > argumentBytes) throw invalid(`${operation}: more than ${argumentBytes} bytes`);
    const manifest = this.parts.functions.get(caller.function);
    if (!manifest) throw invalid("the function is no longer loaded");
    const account = this.parts.time?.of(caller.function);
    const readNow = () => readArguments(operation, args);
    const read = () => this.turns.run(caller.function, () => (account ? account.measure("calls", readNow) : readNow()));
    // Faulty arguments are refused before they wait for room, unless they are large.
    const early = bytes > largeBytes ? undefined : await read();
    signal.throwIfAborted();
    const gate = this.gateOf(caller.function);
    try {
      return await gate.pass(signal, bytes, async () => {
        await this.admitted(caller.function, (isCacheOperation(operation) ? lookMs : callMs) + bytes * byteMs);
        call.isCharged = true;
        const checked = early ?? (await read());
        signal.throwIfAborted();
        const objection = objectionOf(this.parts.withheld?.());
        if (objection) throw objection;
        const reply = await this.perform(caller, manifest, operation, checked, signal);
        if (reply.ok) this.parts.time?.of(caller.function)?.charge("calls", reply.json.length * byteMs);
        return reply;
      });
    } finally {
      if (gate.idle) this.gates.delete(caller.function);
    }
  }

  private async perform(
    caller: Caller,
    manifest: FunctionManifest,
    operation: OperationName,
    args: ReturnType<typeof readArguments>,
    attempt: AbortSignal,
  ): Promise<HostReply> {
    const limit = deadline(this.parts.clock, this.limits.timeoutMs, attempt);
    try {
      // The schema of `operation` has made `args`; the compiler cannot follow that through the union.
      const checked = args as never;
      if (operation === "events.emit") return answered(await this.events.emit(caller, manifest, checked, limit.signal));
      if (isCacheOperation(operation)) return answered(await this.look(caller.function, operation, checked));
      if (operation === "fetch") return answered(await this.fetcher.fetch(manifest, checked, limit.signal));
      return answered(await this.kube.run(manifest, operation, checked, limit.signal));
    } finally {
      limit.end();
    }
  }

  /** Resolves when a call of the function may be made: at once while the function is within its share, else in its turn. */
  private admitted(functionName: string, ms: number): Promise<void> | undefined {
    const account = this.parts.time?.of(functionName);
    if (!account) return undefined;
    return new Promise((resolve) =>
      account.soon(() => {
        account.charge("calls", ms);
        resolve();
      }),
    );
  }

  /** By turns: a look at ten thousand objects takes milliseconds. */
  private look(functionName: string, operation: CacheOperation, args: never): Promise<string> {
    const { reads, time } = this.parts;
    const look = () => answerFromCache(reads, functionName, operation, args);
    return this.turns.run(functionName, () => time?.of(functionName)?.measure("calls", look) ?? look());
  }

  private gateOf(name: string): CallGate {
    let gate = this.gates.get(name);
    if (!gate) {
      const { callsAtOnce: atOnce, callsWaiting: waiting, waitingBytes } = this.limits;
      gate = new CallGate({ atOnce, waiting, waitingBytes });
      this.gates.set(name, gate);
    }
    return gate;
  }

  private errorOf(error: unknown, signal: AbortSignal, caller: Caller): HostCallError {
    if (error instanceof CallFailure) return error.error;
    if (signal.aborted) return { type: "TimeoutError", message: "the attempt has ended", status: 0, reason: "Aborted" };
    this.parts.log.error(
      { function: caller.function, trigger: caller.trigger, run: caller.id, err: error },
      "call broke",
    );
    return { type: "KubeError", message: "the runtime failed to make the call", status: 0, reason: "InternalError" };
  }
}

const objectionOf = (withheld: HostCallError | undefined): CallFailure | undefined =>
  withheld && new CallFailure(withheld);

function resultOf(reply: HostReply): string {
  if (reply.ok) return "ok";
  const { type, details } = reply.error;
  return details?.refusedBy === "runtime" || details?.refused === true ? "refused" : type;
}
