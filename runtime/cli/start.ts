import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { FunctionAccounts } from "../access/function-accounts.ts";
import { systemClock } from "../base/clock.ts";
import { type Environment, readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { version } from "../base/version.ts";
import { Builders } from "../bundle/builders.ts";
import { FolderSource } from "../catalog/folder-source.ts";
import { type FunctionCode, openCode } from "../catalog/function-code.ts";
import { TrustedKeys } from "../catalog/signature.ts";
import type { Host } from "../host/host.ts";
import type { Status } from "../host/status.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import { isBuilt } from "../manifest/built.ts";
import { loadFunctions } from "../manifest/load.ts";
import { FunctionLog } from "../observe/function-log.ts";
import { createLog } from "../observe/log.ts";
import { standardOutput } from "../observe/log-output.ts";
import { LogWriter } from "../observe/log-writer.ts";
import { readTraceSettings } from "../observe/traces/settings.ts";
import { executorProgram } from "../sandbox/executor-program.ts";
import { launchAhead } from "../sandbox/host/child-link.ts";
import { candidate } from "./candidate.ts";
import { command, flagsOf } from "./command.ts";
import { letterCommandFor } from "./letter-command.ts";
import { natsOptions, readNats } from "./nats-options.ts";
import {
  readAccount,
  readFolder,
  readHistory,
  readLeaseDuration,
  readListen,
  readName,
  readNamespace,
  readSize,
} from "./operand.ts";
import { data, functions, historyAge, historySize, kubeconfig, listen, serviceAccount } from "./options.ts";
import { stopSignal } from "./signals.ts";
import { readStore } from "./store-limits.ts";

export const start = command({
  name: "start",
  summary: "runs the functions on a cluster; JSON lines on stdout",
  options: {
    functions,
    data,
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    namespace: { value: "NS", summary: "the runtime's namespace; default: the pod's, then the context's" },
    "cache-limit": {
      value: "SIZE",
      summary: "memory that the `reads` of all functions may take",
      default: "256Mi",
    },
    "history-size": historySize,
    "history-age": historyAge,
    "executor-socket": { value: "PATH", summary: "runs handlers in a `watchfire executor --socket PATH` next to it" },
    jitless: { summary: "executors compile no machine code, so V8 is harder to attack; loops take five times as long" },
    listen,
    identity: {
      value: "WHOSE",
      summary: "`function`: each function has a separate account; `runtime`: all use the runtime's account",
      default: "runtime",
    },
    "service-account": serviceAccount,
    "leader-elect": {
      summary: "works only while it holds the runtime's Lease, and is a standby otherwise",
    },
    "lease-duration": {
      value: "TIME",
      summary: "time after the last renewal for which no other replica takes the Lease, from 10s to 2m",
      default: "10s",
    },
    store: {
      value: "WHERE",
      summary:
        "where checkpoints are: `sqlite`, in the data folder; for replicas on several nodes `kubernetes`, in Secrets, or `nats`, on NATS JetStream",
      default: "sqlite",
    },
    ...natsOptions,
    slots: {
      value: "N",
      summary: "with --store nats: replicas share the functions, which are spread over N slots, such as 64",
    },
    deployed: { summary: "also runs deployed functions; one replaces a function of the same name in the folder" },
    "sets-namespace": {
      value: "NS",
      summary:
        "with --deployed and --identity function: also runs the sets of this namespace, whose functions see what their own accounts may",
      many: true,
    },
    "sets-functions": { value: "N", summary: "most functions of each --sets-namespace", default: "20" },
    "sets-memory": {
      value: "SIZE",
      summary: "most `resources.memory` of the functions of each --sets-namespace together",
      default: "2Gi",
    },
    trust: {
      value: "KEY",
      summary: "runs only built and deployed functions that this ed25519 public key, a PEM file, signed",
      many: true,
    },
    reserve: {
      value: "NAME",
      summary: "an object of the runtime's namespace that no function may write, or read if it is a Secret",
      many: true,
    },
    console: {
      summary: "serves the console to this machine, or through `kubectl port-forward`: see `watchfire console`",
    },
    "token-review": {
      summary:
        "answers accounts of the cluster too, as far as they may get, list or update functions.watchfire.dev in the namespace",
    },
    "function-status": { summary: "maintains a Function object for each function, for `kubectl get functions`" },
  },
  async run(invocation) {
    const { options, given } = invocation;
    const environment = readEnvironment();
    const deployed = given.has("deployed");
    // Deployed functions need no folder.
    const folder = deployed && !given.has("functions") ? undefined : readFolder(options.functions);
    const trust = given.has("trust") ? TrustedKeys.read(options.trust) : undefined;
    const code = folder === undefined ? undefined : await codeOf(folder, environment, trust);
    const address = readListen("--listen", options.listen);
    const { identity } = options;
    const account = readAccount(options["service-account"]);
    const named = options.namespace === undefined ? undefined : readNamespace(options.namespace);
    const reserved = options.reserve.map((name) => readName("--reserve", name));
    if (identity !== "runtime" && identity !== "function") {
      throw new WatchfireError("WF_CLI_USAGE", { what: "--identity takes runtime or function", actual: identity });
    }
    const traces = readTraceSettings(environment.variables, {
      namespace: environment.podNamespace,
      pod: environment.podName,
    });
    const shares = readShares(options, { deployed, identity });
    const cacheLimit = readSize("--cache-limit", options["cache-limit"]);
    const history = readHistory(options);
    const store = readStore(options.store);
    const nats = readNats(options, store);
    // Everyone who reaches the streams can write them, so the Lease decides who may. It also names checkpoints that are still on
    // NATS.
    const elects = given.has("leader-elect") || nats !== undefined;
    if (store !== "sqlite" && !elects) {
      throw new WatchfireError("WF_CLI_USAGE", {
        what: `--store ${store} needs --leader-elect: every runtime that can reach the store may write it`,
      });
    }
    const lasting = readLeaseDuration(options["lease-duration"]);
    const slots = readSlots(options.slots, store);
    const socket = options["executor-socket"];
    const jitless = given.has("jitless");
    // Work of other processes, while this one loads the rest of its code.
    const launch = socket ? undefined : launchAhead(executorsAhead, executorProgram({ jitless }));
    if (code instanceof Builders) code.warm(buildersAhead);
    const source = folder !== undefined && code ? new FolderSource(folder, code) : undefined;
    // A standby may wait for long, so it reads the folder when it becomes active.
    if (!elects) source?.begin();
    const { connectKubeconfig } = await import("../kube/kubeconfig.ts");
    const { serve } = await import("./serve.ts");
    const { Metrics } = await import("../observe/metrics.ts");
    const metrics = new Metrics();
    const logWriter = new LogWriter(standardOutput(), systemClock, metrics.lineDropped);
    process.on("exit", () => logWriter.flush(flushMs));
    const functionLog = new FunctionLog(logWriter);
    const log = createLog(environment.logLevel, functionLog);
    const stop = stopSignal(environment);
    const { transport, defaultNamespace } = await connectKubeconfig({
      file: options.kubeconfig,
      context: options.context,
      environment: environment.variables,
    });
    const namespace = named ?? environment.podNamespace ?? defaultNamespace;
    if (shares.setNamespaces.includes(namespace)) {
      throw new WatchfireError("WF_CLI_USAGE", { what: "--sets-namespace takes other namespaces", actual: namespace });
    }
    const identified = { transport, namespace, account, clock: systemClock, random: Math.random };
    const data = given.has("data") ? options.data : (environment.dataFolder ?? options.data);
    try {
      const runs = {
        functions: folder,
        ...(code && { code }),
        ...(source && { folder: source }),
        data,
        letterCommand: letterCommandFor(data, environment),
        ...identified,
        store,
        ...(nats && { nats }),
        deployed,
        ...shares,
        trust,
        reserved,
        functionStatus: given.has("function-status"),
        tokenReview: given.has("token-review"),
        ...(identity === "function" && { accounts: new FunctionAccounts(identified) }),
        listen: address,
        console: given.has("console"),
        flags: flagsOf(start, invocation),
        proxies: environment.variables,
        traces,
        jitless,
        cacheLimit,
        history,
        ...(launch && { launch }),
        ...(socket && { executorSocket: socket }),
        log,
        functionLog,
        metrics,
      };
      const begin = async (runtime: Host) => {
        log.info({ version, cluster: transport.description, url: runtime.url }, "started");
        if (elects) log.info({}, slots === undefined ? "running for the lease" : "joining the fleet");
        const reportEmpty = () => {
          const looked = [
            ...(folder === undefined ? [] : [`${resolve(folder)}/NAME/function.yaml`, `${resolve(folder)}/*.yaml`]),
            ...(deployed ? [`what \`watchfire deploy\` brings for ${namespace}/${account}`] : []),
          ];
          if (isEmpty(runtime.status())) log.info({ looked }, "no functions yet");
        };
        if (!elects) reportEmpty();
        await runtime.untilReady(stop);
        // Before it has its Lease, or has joined its fleet, it may not have read any functions.
        if (elects) reportEmpty();
        log.info({}, "ready");
      };
      await serve(
        { ...runs, slots, ...(elects && { election: { ...candidate(environment), leaseMs: lasting } }) },
        stop,
        begin,
      );
    } catch (error) {
      const isLost = error instanceof WatchfireError && error.code === "WF_LEASE_LOST";
      if (isLost && environment.isInPod && !stop.aborted) {
        log.warn({ error: error.message }, "starting again in this process");
        logWriter.flush(flushMs);
        startAgain(environment.variables);
      }
      throw error;
    } finally {
      await transport.close();
    }
    return 0;
  },
});

/**
 * Replaces the program in this process by a new start of it. Nothing of its memory stays, and the container continues. If the
 * process ended, Kubernetes would wait before each restart of the container, longer each time, and up to five minutes. Returns
 * only where Node cannot do that.
 */
function startAgain({ WATCHFIRE_LAUNCHER_FD: _, ...variables }: Environment["variables"]): void {
  // Node closes all descriptors but the standard ones, and a container has no launcher.
  process.execve?.(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], variables);
}

/** @throws WatchfireError WF_CLI_USAGE */
function readSlots(text: string | undefined, store: StoreKind): number | undefined {
  if (text === undefined) return undefined;
  if (store !== "nats") throw new WatchfireError("WF_CLI_USAGE", { what: "--slots needs --store nats" });
  const slots = Number(text);
  if (/^[1-9]\d*$/.test(text) && slots <= mostSlots) return slots;
  throw new WatchfireError("WF_CLI_USAGE", { what: `--slots takes 1 to ${mostSlots}`, actual: text });
}

/** Returns what other namespaces may run. @throws WatchfireError WF_CLI_USAGE */
function readShares(
  options: {
    readonly "sets-namespace": readonly string[];
    readonly "sets-functions": string;
    readonly "sets-memory": string;
  },
  { deployed, identity }: { readonly deployed: boolean; readonly identity: string },
) {
  const setNamespaces = [...new Set(options["sets-namespace"].map((each) => readNamespace(each, "--sets-namespace")))];
  if (setNamespaces.length > 0 && !(deployed && identity === "function")) {
    throw new WatchfireError("WF_CLI_USAGE", { what: "--sets-namespace needs --deployed and --identity function" });
  }
  const { "sets-functions": count, "sets-memory": memory } = options;
  if (!/^[1-9]\d{0,4}$/.test(count)) {
    throw new WatchfireError("WF_CLI_USAGE", { what: "--sets-functions takes a number, 1 to 99999", actual: count });
  }
  const setLimits = { functions: Number(count), memoryBytes: readSize("--sets-memory", memory) };
  return { setNamespaces, setLimits };
}

/** True if there is no function, in other replicas either. A deployment that may not be read may have some. */
const isEmpty = ({ functions, fleet, deployment }: Status): boolean =>
  functions.length === 0 &&
  deployment === undefined &&
  (fleet?.slots ?? []).every((slot) => slot.functions.length === 0);

/** Maximum number of slots. Each is a store, and a Lease that every replica reads every second. */
const mostSlots = 512;

/** How long the end waits for the log's reader, in milliseconds. A drain leaves 5 s of a pod's grace period. */
const flushMs = 2_000;

/** Number of executors that are started in advance, for several functions. With a single function, the second is ended. */
const executorsAhead = 2;

/** Number of builders that are started in advance. The first builds start the others. */
const buildersAhead = 1;

/** How long an idle builder is kept, in milliseconds. Files do not change here, so there is little to build after the start. */
const builderIdleMs = 2_000;

/** The token of a pod's account. */
const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/**
 * Returns the functions' code. Sources are not built in a pod, next to its credentials, and are never signed.
 * @throws WatchfireError WF_BUILD_SOURCES, WF_BUILD_UNTRUSTED, WF_BUILD_DAMAGED
 */
async function codeOf(
  folder: string,
  { podNamespace }: Environment,
  trust: TrustedKeys | undefined,
): Promise<FunctionCode> {
  const isPod = podNamespace !== undefined || existsSync(tokenFile);
  if ((isPod || trust) && !isBuilt(folder)) {
    const { functions, rejected } = await loadFunctions(folder);
    if (functions.length + rejected.length > 0) {
      const place = { file: folder };
      if (trust) throw new WatchfireError("WF_BUILD_UNTRUSTED", { what: "it holds sources", place });
      throw new WatchfireError("WF_BUILD_SOURCES", { what: "in a pod nothing is built", place });
    }
  }
  return openCode(folder, systemClock, trust, { idleMs: builderIdleMs });
}
