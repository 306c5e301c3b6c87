import { existsSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { version } from "../base/version.ts";
import { Builders } from "../bundle/builders.ts";
import { ChosenSource } from "../catalog/chosen-source.ts";
import { FolderSource } from "../catalog/folder-source.ts";
import { openCode } from "../catalog/function-code.ts";
import { type Banner, renderBanner } from "../dev/banner.ts";
import { makeDataFolder } from "../dev/data-folder.ts";
import { watchFolder } from "../dev/folder-watch.ts";
import { type Key, keyList, listenToKeys } from "../dev/keys.ts";
import { findKubectl, kubectlPage } from "../dev/kubectl.ts";
import { SampleKeeper } from "../dev/sample-keeper.ts";
import { SampleRecord } from "../dev/sample-record.ts";
import { TypeWatch, type TypeWatchOptions } from "../dev/type-watch.ts";
import type { Host } from "../host/host.ts";
import { checkpointFault } from "../journal/sqlite/fault.ts";
import { SqliteLock } from "../journal/sqlite/lock.ts";
import { connectDirect } from "../kube/direct.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import { loadFunctions } from "../manifest/load.ts";
import { scheduleText } from "../manifest/schedule.ts";
import { consoleLine } from "../observe/console-log.ts";
import { FunctionLog } from "../observe/function-log.ts";
import { createLog, type Logger } from "../observe/log.ts";
import { notServedYet } from "../observe/source-log.ts";
import { launchAhead } from "../sandbox/host/child-link.ts";
import { guestScript } from "../sandbox/host/guest-script.ts";
import { command, type Values } from "./command.ts";
import { devKeys } from "./dev-keys.ts";
import { startEmbeddedCluster } from "./embedded-cluster.ts";
import { letterCommandFor } from "./letter-command.ts";
import { readFolder, readPort } from "./operand.ts";
import { data, endpointsPort, functions, loopback } from "./options.ts";
import { serve } from "./serve.ts";
import { stopSignal } from "./signals.ts";

/** What the pool starts with several functions. Where there is one, the second is let go of. */
const executorsAhead = 2;

/** One core is the cluster's meanwhile. */
const buildersAhead = 1;

/** Several projects may be at work at once; nobody has this many. */
const sparePorts = 20;

/** Milliseconds that the table waits for readiness: the folder is watched from then on, so that a manifest can be mended. */
const mostWaitMs = 5_000;

export const dev = command({
  name: "dev",
  summary: "runs the functions on an embedded cluster, or on one that is named, and takes up changes as they are saved",
  options: {
    functions,
    data,
    context: { value: "NAME", summary: "use a context of your kubeconfig instead of the embedded cluster" },
    kubeconfig: { value: "FILE", summary: "use this kubeconfig instead of the embedded cluster" },
    port: endpointsPort,
    only: { value: "FUNCTION", summary: "runs this function alone, and leaves the others' positions", many: true },
    "no-console": { summary: "serves no console" },
    "dry-run": { summary: "shows what functions would write to the cluster, or send by fetch, and sends none of it" },
  },
  async run({ options, given }) {
    const environment = readEnvironment();
    const folder = readFolder(options.functions);
    const listen = endpointsAt(options.port, given.has("port"));
    const only = await readOnly(folder, options.only);
    makeDataFolder(options.data);
    const dryRun = given.has("dry-run");
    const data = dryRun ? freshFolder(join(options.data, "dry-run")) : options.data;
    const hasKubectl = findKubectl(environment.variables.PATH) !== undefined;
    let isUp = false;
    let running: Host | undefined;
    const functionLog = new FunctionLog({
      write: (line) => {
        // Until then the banner's table is to tell of it.
        if (!isUp && line.includes(notServedYet)) return;
        // As it ran: the file may have changed since.
        process.stdout.write(`${consoleLine(line, (name, file) => running?.sourceText(name, file))}\n`);
      },
    });
    const log = createLog(environment.logLevel, functionLog);
    const stop = stopSignal(environment);
    // Other processes' work, while the cluster starts in this one.
    guestScript().catch(() => undefined); // whoever needs it hears of a failure
    const launch = launchAhead(executorsAhead);
    const code = openCode(folder, systemClock);
    if (code instanceof Builders) code.warm(buildersAhead);
    const cluster = await openCluster(options, environment.variables);
    const { transport, namespace } = cluster;
    try {
      await serve(
        {
          functions: folder,
          ...(only && { folder: new ChosenSource(new FolderSource(folder, code), only) }),
          data,
          dryRun,
          transport,
          namespace,
          listen,
          console: !given.has("no-console"),
          proxies: environment.variables,
          launch,
          code,
          clock: systemClock,
          random: Math.random,
          log,
          functionLog,
          successLevel: "info",
          letterCommand: letterCommandFor(data, environment),
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
          const types = typeWatchOf(runtime, folder, log, stop);
          watchFolder(folder, {
            clock: systemClock,
            signal: stop,
            changed: () => {
              void runtime.reload().then(() => samples?.look());
              types.changed();
            },
            failed: (reason) => log.warn({ folder, error: reason }, "not everything can be watched"),
          });
          await samples?.look();
          types.changed();
        },
      );
    } finally {
      await cluster.close();
    }
    return 0;
  },
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** As Ctrl-C: a second one ends the process at once. */
const quit = (): void => void process.kill(process.pid, "SIGINT");

/** Undefined where nobody sits at a terminal. */
function keysOf({
  runtime,
  folder,
  cluster: { transport, namespace, samples },
  hasConsole,
}: Pick<BannerParts, "runtime" | "folder" | "cluster"> & { readonly hasConsole: boolean }): readonly Key[] | undefined {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined;
  return devKeys({ runtime, folder, transport, namespace, hasSamples: samples !== undefined, hasConsole, say, quit });
}

/** The functions that are chosen; undefined: all. @throws WatchfireError WF_CLI_USAGE for one that is not there */
async function readOnly(folder: string, names: readonly string[]): Promise<readonly string[] | undefined> {
  if (names.length === 0) return undefined;
  const { functions, rejected } = await loadFunctions(folder);
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

/** An empty folder in the place of what a dry run before left. @throws WatchfireError WF_CHECKPOINT_LOCKED where one still runs */
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

/** Where the endpoints listen. A port that was not named is stepped over where it is taken. */
export const endpointsAt = (port: string, isNamed: boolean) => ({
  host: loopback,
  port: readPort("--port", port),
  spare: isNamed ? 0 : sparePorts,
});

/** The cluster that functions run on while they are written. */
interface DevCluster {
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly kubeconfig: string | undefined;
  /** For the banner. */
  readonly label: string;
  /** Which samples it has had; undefined where none belongs, on a cluster that is not ours. */
  readonly samples: SampleRecord | undefined;
  close(): Promise<void>;
}

async function openCluster(
  { data: folder, context, kubeconfig }: Values<typeof dev.options>,
  variables: Readonly<NodeJS.ProcessEnv>,
): Promise<DevCluster> {
  if (context === undefined && kubeconfig === undefined) return openEmbedded(folder);
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

/** Looks at types as `watchfire validate` does, where there is a TypeScript to do it. */
function typeWatchOf(runtime: Host, folder: string, log: Logger, signal: AbortSignal): TypeWatch {
  const check: TypeWatchOptions["check"] = async (handlers, signal) => {
    if (isBuilt(folder)) return [];
    const { checkTypes } = await import("../types/handler-types.ts");
    return (await checkTypes(folder, handlers, process.cwd(), signal)).faults;
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

/** Whether it gets ready in time. A trigger that the API server refuses keeps it from that until its manifest is mended. */
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
  /** More of them. */
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
    empty: `no functions yet in ${resolve(folder)}: add NAME/function.yaml there, and a handler.ts beside it`,
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
        hasKubectl ? `${kubectl} get configmaps -A` : `none is on your PATH; ${kubectlPage} has it for every system`,
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
