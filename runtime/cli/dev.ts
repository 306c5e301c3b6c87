import { existsSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { suggest } from "../base/suggest.ts";
import { version } from "../base/version.ts";
import { systemReason } from "../base/wording.ts";
import { Builders } from "../bundle/builders.ts";
import { ChosenSource } from "../catalog/chosen-source.ts";
import { FolderSource } from "../catalog/folder-source.ts";
import { openCode } from "../catalog/function-code.ts";
import { type Banner, renderBanner } from "../dev/banner.ts";
import { consoleTools } from "../dev/console-tools.ts";
import { makeDataFolder } from "../dev/data-folder.ts";
import { dotEnv } from "../dev/dot-env.ts";
import { watchFolder } from "../dev/folder-watch.ts";
import { type Key, keyList, listenToKeys } from "../dev/keys.ts";
import { findKubectl, kubectlPage } from "../dev/kubectl.ts";
import { RealCluster } from "../dev/real/real-cluster.ts";
import { findRealPrograms, type RealPrograms } from "../dev/real/real-programs.ts";
import { SampleKeeper } from "../dev/sample-keeper.ts";
import { SampleRecord } from "../dev/sample-record.ts";
import { TypeWatch, type TypeWatchOptions } from "../dev/type-watch.ts";
import type { Host } from "../host/host.ts";
import { checkpointFault, isBusy } from "../journal/sqlite/fault.ts";
import { SqliteLock } from "../journal/sqlite/lock.ts";
import { connectDirect } from "../kube/direct.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import { type LoadedFunctions, loadFunctions } from "../manifest/load.ts";
import { scheduleText } from "../manifest/schedule.ts";
import { strayWarnings } from "../manifest/stray-files.ts";
import { consoleLine } from "../observe/console-log.ts";
import { FunctionLog } from "../observe/function-log.ts";
import { createLog, type Logger } from "../observe/log.ts";
import { notServedYet } from "../observe/source-log.ts";
import { readTraceSettings } from "../observe/traces/settings.ts";
import { launchAhead } from "../sandbox/host/child-link.ts";
import { guestScript } from "../sandbox/host/guest-script.ts";
import { refreshFunctionTypes } from "../types/function-types.ts";
import { command, flagsOf, type Values } from "./command.ts";
import { devKeys } from "./dev-keys.ts";
import { startEmbeddedCluster } from "./embedded-cluster.ts";
import { letterCommandFor } from "./letter-command.ts";
import { readFolder, readHistory, readPort } from "./operand.ts";
import { data, endpointsPort, functions, historyAge, historySize, loopback, real } from "./options.ts";
import { serve } from "./serve.ts";
import { stopSignal } from "./signals.ts";
import { readValues, valuesOption } from "./values.ts";
import { compareHandlers, warn } from "./warning.ts";

/** Number of executors that are started in advance, for several functions. With a single function, the second is ended. */
const executorsAhead = 2;

/** Number of builders that are started in advance. One core is busy with the cluster. */
const buildersAhead = 1;

/** Number of further ports that are tried, because several projects may run at once. */
const sparePorts = 20;

/**
 * How long the table waits for readiness, in milliseconds. After that the folder is watched, so that a manifest can be fixed.
 */
const mostWaitMs = 5_000;

export const dev = command({
  name: "dev",
  summary: "runs the functions on an embedded cluster, or on yours, and reloads them when a file is saved",
  options: {
    functions,
    values: valuesOption,
    data,
    context: { value: "NAME", summary: "use a context of your kubeconfig instead of the embedded cluster" },
    kubeconfig: { value: "FILE", summary: "use this kubeconfig instead of the embedded cluster" },
    real,
    port: endpointsPort,
    only: {
      value: "FUNCTION",
      summary: "runs only this function, and keeps the checkpoints of the others",
      many: true,
    },
    "history-size": historySize,
    "history-age": historyAge,
    "no-console": { summary: "serves no console" },
    "dry-run": { summary: "shows the writes and fetches of functions, and sends nothing" },
  },
  async run(invocation) {
    const { options, given } = invocation;
    const environment = readEnvironment();
    const folder = readFolder(options.functions);
    const listen = endpointsAt(options.port, given.has("port"));
    if (given.has("real") && (given.has("context") || given.has("kubeconfig"))) {
      throw new WatchfireError("WF_CLI_USAGE", {
        what: "--real starts a cluster, --context and --kubeconfig name one",
      });
    }
    const programs = given.has("real") ? findRealPrograms(environment.variables) : undefined;
    const history = readHistory(options);
    const filling = { values: () => readValues(options.values), placeholders: "option" } as const;
    const load: ManifestLoader = async () => {
      const values = filling.values();
      const loaded = await loadFunctions(folder, { ...filling, values });
      // A manifest that is refused may be the one that uses a value.
      return { ...loaded, unused: loaded.faults.length === 0 ? (values?.unused() ?? []) : [] };
    };
    filling.values(); // a wrong file fails before a cluster starts
    const only = options.only.length === 0 ? undefined : readOnly(await load(), options.only);
    makeDataFolder(options.data);
    const dryRun = given.has("dry-run");
    const data = dryRun ? freshFolder(join(options.data, "dry-run")) : options.data;
    const hasKubectl = findKubectl(environment.variables.PATH) !== undefined;
    let isUp = false;
    let running: Host | undefined;
    let types: TypeWatch | undefined;
    const functionLog = new FunctionLog({
      write: (line) => {
        // Until then, the banner's table reports it.
        if (!isUp && line.includes(notServedYet)) return;
        // The source as compiled, because the file may have changed since.
        process.stdout.write(`${consoleLine(line, (name, file) => running?.sourceText(name, file))}\n`);
      },
    });
    const log = createLog(environment.logLevel, functionLog);
    const stop = stopSignal(environment);
    // Work of other processes, while the cluster starts in this one.
    guestScript().catch(() => undefined); // its user reports a failure
    const launch = launchAhead(executorsAhead);
    const code = openCode(folder, systemClock);
    if (code instanceof Builders) code.warm(buildersAhead);
    if (programs) log.info({ program: programs.apiserver }, "starting a real API server");
    const source = new FolderSource(folder, code, filling);
    const cluster = programs
      ? await openReal(options.data, programs)
      : await openCluster(options, environment.variables, dryRun);
    const { transport, namespace } = cluster;
    try {
      await serve(
        {
          functions: folder,
          folder: only ? new ChosenSource(source, only) : source,
          data,
          dryRun,
          transport,
          namespace,
          listen,
          console: !given.has("no-console"),
          writesFixtures: true,
          consoleTools: consoleTools({
            transport,
            mayApply: cluster.samples !== undefined && !dryRun,
            manifests: () => (running?.functions ?? []).map(({ file }) => file),
            types: () => types,
            clock: systemClock,
          }),
          flags: flagsOf(dev, invocation),
          proxies: environment.variables,
          traces: readTraceSettings(environment.variables),
          launch,
          code,
          clock: systemClock,
          random: Math.random,
          log,
          functionLog,
          history,
          successLevel: "info",
          letterCommand: letterCommandFor(data, environment),
          localEnv: dotEnv(folder),
          interactive: true,
        },
        stop,
        async (runtime) => {
          running = runtime;
          const isReady = await readyWithin(runtime, mostWaitMs, stop);
          const hasConsole = !given.has("no-console");
          const keys = keysOf({ runtime, folder, cluster, hasConsole });
          const link = runtime.loginLink();
          const hints = [
            ...(link === undefined ? [] : [["console", link] as const]),
            ...(dryRun ? [["dry run", `writes are shown, not sent; commands find it by --data ${data}`] as const] : []),
            ...(keys ? [["keys", keyList(keys)] as const] : []),
          ];
          process.stdout.write(renderBanner(bannerOf({ runtime, isReady, cluster, folder, hasKubectl, hints })));
          if (keys)
            stop.addEventListener("abort", listenToKeys({ input: process.stdin, keys, quit, say }), { once: true });
          isUp = true;
          const { samples: record } = cluster;
          const manifests = () => runtime.functions.map(({ file }) => file);
          const samples = record && new SampleKeeper({ manifests, transport, record, data: options.data, log });
          const reported = new Set<string>();
          const watch = typeWatchOf(runtime, folder, load, log, stop);
          types = watch;
          watchFolder(folder, {
            clock: systemClock,
            signal: stop,
            changed: () => {
              void runtime.reload().then(() => {
                refreshTypes(runtime, log);
                return samples?.look();
              });
              void reportHandlers(folder, load, reported);
              watch.changed();
            },
            failed: (reason) => log.warn({ folder, error: reason }, "not everything can be watched"),
          });
          refreshTypes(runtime, log);
          await reportHandlers(folder, load, reported);
          await samples?.look();
          watch.changed();
        },
      );
    } finally {
      await cluster.close();
    }
    return 0;
  },
});

/** Reads the file of `--values` and then the manifests. Rejects with WatchfireError if the values cannot be read. */
type ManifestLoader = () => Promise<LoadedFunctions & { readonly unused: readonly WatchfireError[] }>;

/** Returns `undefined` if values cannot be read: the reload, which reads them too, reports it. */
function ignoreUnreadableValues(error: unknown): undefined {
  if (!(error instanceof WatchfireError)) throw error;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Acts like Ctrl-C, so a second call ends the process at once. */
const quit = (): void => void process.kill(process.pid, "SIGINT");

/** Returns `undefined` without a terminal. */
function keysOf({
  runtime,
  folder,
  cluster: { transport, namespace, samples },
  hasConsole,
}: Pick<BannerParts, "runtime" | "folder" | "cluster"> & { readonly hasConsole: boolean }): readonly Key[] | undefined {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined;
  return devKeys({ runtime, folder, transport, namespace, hasSamples: samples !== undefined, hasConsole, say, quit });
}

/** Returns the selected functions. @throws WatchfireError WF_CLI_USAGE for an unknown one */
function readOnly({ functions, rejected }: LoadedFunctions, names: readonly string[]): readonly string[] {
  const known = [...functions, ...rejected].flatMap(({ name }) => name ?? []);
  for (const name of names) {
    if (known.includes(name)) continue;
    const meant = suggest(name, known);
    const hint =
      meant === undefined ? `the folder has: ${known.join(", ") || "none"}` : `did you mean --only ${meant}?`;
    throw new WatchfireError("WF_CLI_USAGE", { what: "--only takes a function of the folder", actual: name, hint });
  }
  return names;
}

/** Removes the folder of an earlier dry run, and returns its path. @throws WatchfireError WF_CHECKPOINT_LOCKED if a dry run uses it */
function freshFolder(folder: string): string {
  if (existsSync(folder)) {
    try {
      new SqliteLock(folder).release();
    } catch (error) {
      throw checkpointFault(error, folder);
    }
    rmSync(folder, { recursive: true });
  }
  return folder;
}

/** Returns the address of the endpoints. If the port was not given explicitly, the following ports are tried as well. */
export const endpointsAt = (port: string, isNamed: boolean) => ({
  host: loopback,
  port: readPort("--port", port),
  spare: isNamed ? 0 : sparePorts,
});

/** The cluster that functions run on during development. */
interface DevCluster {
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly kubeconfig: string | undefined;
  /** Shown in the banner. */
  readonly label: string;
  /** Record of the applied samples. `undefined` on a cluster that is not the embedded one, where no samples are applied. */
  readonly samples: SampleRecord | undefined;
  close(): Promise<void>;
}

async function openCluster(
  { data: folder, context, kubeconfig }: Pick<Values<typeof dev.options>, "data" | "context" | "kubeconfig">,
  variables: Readonly<NodeJS.ProcessEnv>,
  dryRun: boolean,
): Promise<DevCluster> {
  if (context === undefined && kubeconfig === undefined) {
    const ofOther = join(folder, "kubeconfig");
    return openEmbedded(folder).catch((error) => {
      // A dry run changes nothing, so it can use the cluster of a `watchfire dev` that runs.
      const isLocked = error instanceof WatchfireError && error.code === "WF_DEV_CLUSTER_LOCKED";
      if (!dryRun || !isLocked || !existsSync(ofOther)) throw error;
      return openCluster({ data: folder, context, kubeconfig: ofOther }, variables, dryRun);
    });
  }
  const { connectKubeconfig } = await import("../kube/kubeconfig.ts");
  const connection = await connectKubeconfig({ file: kubeconfig, context, environment: variables });
  return {
    transport: connection.transport,
    namespace: connection.defaultNamespace,
    kubeconfig,
    label: connection.transport.description,
    samples: undefined,
    close: () => connection.transport.close(),
  };
}

async function openEmbedded(folder: string): Promise<DevCluster> {
  const kubeconfig = join(folder, "kubeconfig");
  const state = join(folder, "cluster.state");
  const samples = new SampleRecord(folder, !existsSync(state));
  const cluster = await startEmbeddedCluster({ state, kubeconfig });
  const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
  return {
    transport,
    namespace: "default",
    kubeconfig,
    label: "embedded (--context NAME for one of yours)",
    samples,
    close: async () => {
      await transport.close();
      await cluster.close();
    },
  };
}

/**
 * Prints the warnings of `watchfire validate` that need only the folder: stray files, calls without a permission, and unused values.
 * Each is printed once.
 */
async function reportHandlers(folder: string, load: ManifestLoader, reported: Set<string>): Promise<void> {
  const loaded = await load().catch(ignoreUnreadableValues);
  if (!loaded) return;
  const warnings = [
    ...strayWarnings(folder, loaded.functions),
    ...compareHandlers(folder, loaded).warnings,
    ...loaded.unused,
  ];
  for (const { message } of warnings) if (!reported.has(message)) warn(message);
  reported.clear();
  for (const { message } of warnings) reported.add(message);
}

/** Keeps its objects in the data folder, as the embedded cluster does. @throws WatchfireError of the dev section */
async function openReal(data: string, programs: RealPrograms): Promise<DevCluster> {
  const folder = join(data, "real");
  const samples = new SampleRecord(data, !existsSync(folder), "samples-real");
  const lock = lockCluster(folder);
  try {
    const cluster = await RealCluster.start({ programs, folder });
    const transport = connectDirect({ server: cluster.url, ca: cluster.ca, token: cluster.token });
    const kubeconfig = join(data, "kubeconfig");
    await cluster.writeKubeconfig(kubeconfig);
    const { gitVersion } = await transport.json<{ readonly gitVersion: string }>({ method: "GET", path: "/version" });
    return {
      transport,
      namespace: "default",
      kubeconfig,
      label: `kube-apiserver ${gitVersion} of KUBEBUILDER_ASSETS`,
      samples,
      close: async () => {
        await transport.close();
        await cluster.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Locks the folder of a real cluster: two etcds on it would wait for each other. */
function lockCluster(folder: string): SqliteLock {
  makeFolder(folder, 0o700);
  try {
    return new SqliteLock(folder, "cluster.lock");
  } catch (error) {
    if (!isBusy(error)) throw error;
    throw new WatchfireError("WF_DEV_CLUSTER_LOCKED", {
      what: "another process runs a real cluster on this folder",
      place: { file: folder },
      cause: error,
    });
  }
}

/** Rewrites the `function.d.ts` of each function whose manifest has changed. */
function refreshTypes({ functions }: Host, log: Logger): void {
  try {
    refreshFunctionTypes(functions);
  } catch (error) {
    log.warn({ error: systemReason(error) }, "a function.d.ts cannot be written");
  }
}

/** Checks types as `watchfire validate` does, if TypeScript is installed. */
function typeWatchOf(runtime: Host, folder: string, load: ManifestLoader, log: Logger, signal: AbortSignal): TypeWatch {
  const check: TypeWatchOptions["check"] = async (handlers, signal) => {
    if (isBuilt(folder)) return [];
    const { checkTypes } = await import("../types/handler-types.ts");
    const { faults } = await checkTypes(folder, handlers, process.cwd(), signal);
    const loaded = await load().catch(ignoreUnreadableValues);
    return loaded ? [...faults, ...compareHandlers(folder, loaded).faults] : faults;
  };
  const functions = () => {
    const codes = new Map(runtime.status().functions.map(({ name, code }) => [name, code]));
    return runtime.functions.map(({ name, handler }) => ({
      name,
      handler,
      isBroken: codes.get(name)?.startsWith("WF_BUNDLE_") ?? false,
    }));
  };
  return new TypeWatch({ check, functions, clock: systemClock, signal, log });
}

/**
 * Returns whether the runtime becomes ready in time. It does not if the API server refuses a trigger, until the manifest is
 * fixed.
 */
async function readyWithin(runtime: Host, ms: number, stop: AbortSignal): Promise<boolean> {
  const late = new AbortController();
  const timer = systemClock.after(ms, () => late.abort());
  await runtime.untilReady(AbortSignal.any([stop, late.signal])).catch(() => stop.throwIfAborted());
  timer.cancel();
  return !late.signal.aborted;
}

interface BannerParts {
  readonly runtime: Host;
  readonly isReady: boolean;
  readonly cluster: DevCluster;
  readonly folder: string;
  readonly hasKubectl: boolean;
  /** Further hints. */
  readonly hints: Banner["hints"];
}

function bannerOf({ runtime, isReady, cluster, folder, hasKubectl, hints }: BannerParts): Banner {
  const { functions } = runtime.status();
  const missing = new Set(
    functions.flatMap(({ name, triggers }) =>
      triggers.flatMap((trigger) => (trigger.state === "missing" ? `${name}/${trigger.name}` : [])),
    ),
  );
  const faulty = functions.filter(({ code }) => code !== undefined);
  const kubectl = cluster.kubeconfig === undefined ? "kubectl" : `kubectl --kubeconfig ${cluster.kubeconfig}`;
  return {
    version,
    readyMs: isReady ? performance.now() : undefined,
    cluster: cluster.label,
    empty: `no functions yet in ${resolve(folder)}: add NAME/function.yaml there, and a handler.ts next to it`,
    functions: runtime.functions.map((manifest) => ({
      name: manifest.name,
      triggers: [
        ...manifest.triggers.map((trigger) =>
          missing.has(`${manifest.name}/${trigger.name}`)
            ? `${triggerText(trigger)}, not served yet`
            : triggerText(trigger),
        ),
        ...manifest.schedules.map(scheduleText),
      ],
      handler: relative(process.cwd(), manifest.handler),
      limits: limitsText(manifest),
    })),
    hints: [
      [
        "kubectl",
        hasKubectl ? `${kubectl} get configmaps -A` : `it is not on your PATH; ${kubectlPage} has it for every system`,
      ],
      ["status", `${runtime.url}/status`],
      ...faulty.map(({ name }) => ["disabled", `${name}, see above`] as const),
      ...hints,
      ["stop", "Ctrl-C"],
    ],
  };
}

function triggerText({ apiVersion, kind, namespaces }: Trigger): string {
  const where = { all: "", labels: " in namespaces by label", names: "" }[namespaces.type];
  const names = namespaces.type === "names" ? ` in ${namespaces.names.join(", ")}` : "";
  return `${apiVersion}/${kind}${where}${names}`;
}

const limitsText = ({ resources }: FunctionManifest): string =>
  `${Math.round(resources.memoryBytes / 1024 / 1024)} Mi, ${resources.cpuPerEventMs} ms CPU`;
