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
import { describeTarget } from "./call-target.ts";
import { deadline } from "./deadline.ts";
import { DryRunTransport, type OnDryRunWrite } from "./dry-run.ts";
import { EventRecorder } from "./event-recorder.ts";
import { answered, CallFailure, invalid, tooMany } from "./failure.ts";
import { Fetcher } from "./fetcher.ts";
import type { FunctionAccounts } from "./function-accounts.ts";
import { CallGate } from "./gate.ts";
import { type KeptObjects, type KindLookup, KubeCalls } from "./kube-calls.ts";
import { type AccessObserver, mostListedCalls } from "./observer.ts";
import type { OwnObjects } from "./own-objects.ts";
import { ReadingTurns } from "./reading-turns.ts";
import type { HostResolver } from "./resolver.ts";
import { answerKinds } from "./served-kinds.ts";
import { ServerWarnings } from "./server-warnings.ts";
import { answerFromState, isStateOperation } from "./state-calls.ts";

/** Dependencies of `Access`. */
export interface AccessParts {
  readonly transport: KubeTransport;
  /** Accounts under which functions act. Default: the runtime's account, by `transport`. */
  readonly accounts?: Pick<FunctionAccounts, "transport"> | undefined;
  readonly discovery: KindLookup;
  /** Objects of the runtime, which no function may write. */
  readonly own: OwnObjects;
  /** Accounts that are charged with the parent's work on calls. Default: no accounting. */
  readonly time?: LoopAccounts;
  /** Objects that functions keep in memory. Default: no objects. */
  readonly reads?: Pick<Reads, "get" | "list" | "age"> & KeptObjects;
  /** The manifests by name. Read at each call, so that a reload takes effect at once. */
  readonly functions: Pick<ReadonlyMap<string, FunctionManifest>, "get">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly observer?: AccessObserver;
  /** Called when the API server, rather than the manifest, refused a function's call. */
  readonly refused?: (functionName: string) => void;
  /** Resolves host names for `ctx.fetch`. Default: the system's resolver. */
  readonly resolver?: HostResolver;
  /**
   * Called before a call begins and as each of its requests is sent. A returned error goes to the guest instead. Default: no
   * check.
   */
  readonly withheld?: (() => HostCallError | undefined) | undefined;
  /** Further networks of the cluster (CIDR), which `ctx.fetch` refuses like private networks. */
  readonly clusterNetworks?: readonly string[];
  /** Called with each new text of the `Warning` headers in answers to functions' calls. Default: they are ignored. */
  readonly warned?: (functionName: string, text: string) => void;
  /** Receives every write of a function instead of sending it. Default: writes are sent. */
  readonly unsent?: OnDryRunWrite | undefined;
  /** The port of the runtime's endpoints, once they listen. `ctx.fetch` refuses it on every address of this machine. */
  readonly ownPort?: () => number | undefined;
  /** The variables that name the proxies of `ctx.fetch`: HTTPS_PROXY, HTTP_PROXY, NO_PROXY. Default: no proxies. */
  readonly proxies?: ProxyEnvironment;
  readonly limits?: Partial<AccessLimits>;
}

/** Limits of a function's calls. */
interface AccessLimits {
  /** Bytes of one call's arguments. Default 4 MiB. The API server accepts 3 MiB (`apiserver` MaxRequestBodyBytes). */
  readonly argumentBytes: number;
  /** Bytes of one answer. Default 16 MiB. */
  readonly answerBytes: number;
  /** Calls of one attempt. Default 10,000. */
  readonly callsPerAttempt: number;
  /** Concurrent calls of one function. Further calls wait. Default 16. */
  readonly callsAtOnce: number;
  /** Waiting calls of one function. Further calls are refused. Default 1,000. */
  readonly callsWaiting: number;
  /** Bytes of the waiting calls' arguments. Further calls are refused. Default 16 MiB. */
  readonly waitingBytes: number;
  /** Timeout of one call, once it is under way, in milliseconds. Default 30,000. */
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
 * Parent time, in milliseconds, charged for a call, for each byte of its arguments and answer, and for a read from memory, which
 * is also measured. 8,400 `kube.get` took 0.24 ms of CPU each, including their frames (2026-11-27).
 */
const callMs = 0.2;
const byteMs = 0.000_01;
const lookMs = 0.02;
/** The same for a refused call, including its frames. */
const refusedMs = 0.1;

/** Facts about a call that are found while it is made. */
interface MadeCall {
  /** Whether it is charged to the function's account. */
  isCharged: boolean;
  /** Whether the attempt's calls are listed. */
  readonly isListed: boolean;
  /** The header that its requests carry. */
  readonly traceparent: string | undefined;
  target?: string;
  /** The status of the API server's answer. */
  status?: number;
}

/** Arguments above this size, in bytes, wait as text, because they may take ten times as much memory once parsed. */
const largeBytes = 16 * 1024;

/** The parent's side of `ctx.kube`, `ctx.state`, `ctx.events` and `ctx.fetch`: checks each call against the manifest, and executes it. */
export class Access implements HostCalls {
  private readonly parts: AccessParts;
  private readonly limits: AccessLimits;
  private readonly kube: KubeCalls;
  private readonly events: EventRecorder;
  private readonly fetcher: Fetcher;
  private readonly gates = new Map<string, CallGate>();
  private readonly turns: ReadingTurns;
  /** Number of calls, by the attempt's signal. */
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
      return unsent ? new DryRunTransport(transport, functionName, unsent) : transport;
    };
    const answers = new AnswerReader();
    const ownAccounts = accounts !== undefined;
    const warnings = new ServerWarnings(parts.warned ?? (() => {}));
    this.kube = new KubeCalls({
      ...parts,
      transportOf,
      ownAccounts,
      answers,
      warnings,
      answerLimit,
      timeoutMs,
      lastLook,
    });
    this.events = new EventRecorder({ ...parts, transportOf, timeoutMs, lastLook });
    this.fetcher = new Fetcher({ ...parts, answers, lastLook });
  }

  async call(caller: Caller, operation: string, args: string, signal: AbortSignal): Promise<HostReply> {
    const { clock, observer, log } = this.parts;
    const startedAt = clock.monotonic();
    const known = isOperation(operation);
    const list = signal.aborted ? undefined : observer?.listOf?.(caller);
    const span = signal.aborted ? undefined : observer?.spanOf?.(caller);
    const isListed = list !== undefined || span !== undefined;
    const at = isListed ? clock.now() : 0;
    let reply: HostReply;
    const made: MadeCall = { isCharged: false, isListed, traceparent: span?.traceparent };
    try {
      reply = await this.answer(caller, operation, args, signal, made);
    } catch (error) {
      reply = { ok: false, error: this.errorOf(error, signal, caller) };
      if (!made.isCharged) await this.refused(caller, args.length);
    }
    const result = resultOf(reply);
    if (!reply.ok && reply.error.details?.refusedBy === "apiserver") this.parts.refused?.(caller.function);
    const durationMs = clock.monotonic() - startedAt;
    const named = known ? operation : "unknown";
    observer?.called({ function: caller.function, operation: named, result, durationMs });
    if (isListed) {
      const { target = "", status = statusOf(operation, reply) } = made;
      const received = reply.ok ? reply.json.length : reply.error.message.length;
      const call = { operation: named, target, result, status, at, durationMs, sent: args.length, received };
      span?.ended(call);
      if (list && list.calls.length >= mostListedCalls) list.more++;
      else list?.calls.push(call);
    }
    log.debug(
      { function: caller.function, trigger: caller.trigger, run: caller.id, operation, result },
      "call answered",
    );
    return reply;
  }

  refused({ function: name }: Caller, length: number): Promise<void> | undefined {
    return this.admitted(name, refusedMs + length * byteMs);
  }

  /** Closes the connections of `ctx.fetch`. Connections to the cluster belong to the transport. */
  close(): Promise<void> {
    return this.fetcher.close();
  }

  /** @param call receives the facts that are found while it is made */
  private async answer(
    caller: Caller,
    operation: string,
    args: string,
    signal: AbortSignal,
    call: MadeCall,
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
    // Invalid arguments are refused before the call waits for room, unless they are large.
    const early = bytes > largeBytes ? undefined : await read();
    signal.throwIfAborted();
    const gate = this.gateOf(caller.function);
    try {
      return await gate.pass(signal, bytes, async () => {
        await this.admitted(
          caller.function,
          (isCacheOperation(operation) || isStateOperation(operation) ? lookMs : callMs) + bytes * byteMs,
        );
        call.isCharged = true;
        const checked = early ?? (await read());
        if (call.isListed) call.target = describeTarget(operation, checked);
        signal.throwIfAborted();
        const objection = objectionOf(this.parts.withheld?.());
        if (objection) throw objection;
        const reply = await this.perform(caller, manifest, operation, checked, signal, call);
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
    call: MadeCall,
  ): Promise<HostReply> {
    const limit = deadline(this.parts.clock, this.limits.timeoutMs, attempt);
    try {
      // `args` was checked by the schema of `operation`; the compiler cannot follow that through the union.
      const checked = args as never;
      if (operation === "events.emit") return answered(await this.events.emit(caller, manifest, checked, limit.signal));
      if (isCacheOperation(operation)) return answered(await this.look(caller.function, operation, checked));
      if (isStateOperation(operation)) {
        const bounds = { limit: manifest.stateBytes, signal: limit.signal, unsent: this.parts.unsent };
        return answered(await answerFromState(caller, operation, checked, bounds));
      }
      if (operation === "fetch") return answered(await this.fetcher.fetch(manifest, checked, limit.signal, call));
      if (operation === "kube.kinds") return answered(await answerKinds(manifest, this.parts.discovery, checked));
      return answered(await this.kube.run(manifest, operation, checked, limit.signal, call));
    } finally {
      limit.end();
    }
  }

  /** Resolves when a call may be executed: at once while the function is within its share, otherwise in its turn. */
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

  /** Reads from memory in the function's turn, because ten thousand objects take milliseconds. */
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

/** Finds the status in the answer of `ctx.fetch`: the URL before it has no such text, because quotes in it are escaped. */
const statusField = /"status":(\d{3})\b/;

/** Returns the status of an answer that the API server did not give. */
function statusOf(operation: string, reply: HostReply): number | undefined {
  if (!reply.ok) return reply.error.status || undefined;
  const [, status] = (operation === "fetch" && statusField.exec(reply.json)) || [];
  return status === undefined ? undefined : Number(status);
}

function resultOf(reply: HostReply): string {
  if (reply.ok) return "ok";
  const { type, details } = reply.error;
  return details?.refusedBy === "runtime" || details?.refused === true ? "refused" : type;
}
