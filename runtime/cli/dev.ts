import { readFileSync, realpathSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { systemClock } from "../clock.ts";
import { readEnvironment } from "../config.ts";
import { type Banner, renderBanner } from "../dev/banner.ts";
import { watchFolder } from "../dev/folder-watch.ts";
import { applySamples } from "../dev/samples.ts";
import { WatchfireError } from "../errors.ts";
import { connectDirect } from "../kube/direct.ts";
import { Discovery } from "../kube/discovery.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import { consoleLine } from "../observe/console-log.ts";
import { createLog, type Logger } from "../observe/log.ts";
import { Runtime } from "../runtime.ts";
import { guestScript } from "../sandbox/guest-script.host.ts";
import type { Command, Invocation } from "./command.ts";
import { defaults } from "./defaults.ts";
import { readListen, readPort } from "./operand.ts";
import { untilAsked, untilSignal } from "./signals.ts";

export const dev: Command = {
  name: "dev",
  summary: "runs the functions on an embedded cluster, or on one that is named, and takes up changes as they are saved",
  options: {
    functions: { value: "DIR", summary: "the functions folder", default: defaults.functions },
    data: { value: "DIR", summary: "the data folder", default: defaults.data },
    context: { value: "NAME", summary: "use a context of your kubeconfig instead of the embedded cluster" },
    kubeconfig: { value: "FILE", summary: "use this kubeconfig instead of the embedded cluster" },
    port: {
      value: "N",
      summary: "the port of /status and its like on 127.0.0.1",
      default: String(readListen("", defaults.listen).port),
    },
  },
  run,
};

/** The text of the author's own files: a stack may name any file. */
const sourcesBelow =
  (folder: string) =>
  (file: string): string | undefined => {
    try {
      const path = realpathSync(file);
      return path.startsWith(`${realpathSync(folder)}${sep}`) ? readFileSync(path, "utf8") : undefined;
    } catch {
      return undefined; // moved or removed since
    }
  };

/** The cluster that functions run on while they are written. */
interface DevCluster {
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly kubeconfig: string | undefined;
  /** For the banner. */
  readonly label: string;
  readonly embedded: boolean;
  close(): Promise<void>;
}

async function run({ options }: Invocation): Promise<number> {
  const environment = readEnvironment();
  const folder = options.functions ?? defaults.functions;
  const data = options.data ?? defaults.data;
  const log = createLog(environment.logLevel, {
    write: (line) => process.stdout.write(`${consoleLine(line, sourcesBelow(folder))}\n`),
  });
  const { host } = readListen("", defaults.listen);
  const listen = { host, port: readPort("--port", options.port ?? "") };
  const stopping = new AbortController();
  const asked = untilSignal().then(() => stopping.abort());
  // Built by another process while the cluster starts in this one.
  guestScript().catch(() => undefined); // whoever needs it hears of a failure
  const cluster = await openCluster(options, data, environment.variables);
  try {
    const runtime = await Runtime.start(
      {
        functions: folder,
        data,
        transport: cluster.transport,
        namespace: cluster.namespace,
        listen,
        clock: systemClock,
        random: Math.random,
        log,
        successLevel: "info",
      },
      stopping.signal,
    );
    await runtime.untilReady(stopping.signal);
    process.stdout.write(renderBanner(bannerOf(runtime, cluster)));
    const close = watchFolder(folder, systemClock, () => void runtime.reload());
    if (cluster.embedded) await showSamples(runtime, cluster.transport, log);
    await untilAsked(asked, runtime);
    await close();
    await runtime.drain();
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    await cluster.close();
  }
  return 0;
}

async function openCluster(
  options: Invocation["options"],
  data: string,
  variables: Readonly<NodeJS.ProcessEnv>,
): Promise<DevCluster> {
  const { context, kubeconfig } = options;
  if (context === undefined && kubeconfig === undefined) return openEmbedded(data);
  const { connectKubeconfig } = await import("../kube/kubeconfig.ts");
  const connection = await connectKubeconfig({ file: kubeconfig, context, environment: variables });
  return {
    transport: connection.transport,
    namespace: connection.defaultNamespace,
    kubeconfig,
    label: connection.transport.description,
    embedded: false,
    close: () => connection.transport.close(),
  };
}

async function openEmbedded(data: string): Promise<DevCluster> {
  const { startCluster } = await import("../dev/cluster/cluster.ts");
  const kubeconfig = join(data, "kubeconfig");
  const cluster = await startCluster({
    stateFile: join(data, "cluster.state"),
    kubeconfigFile: kubeconfig,
    clock: systemClock,
  });
  const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
  return {
    transport,
    namespace: "default",
    kubeconfig,
    label: "embedded (--context NAME for one of yours)",
    embedded: true,
    close: async () => {
      await transport.close();
      await cluster.close();
    },
  };
}

async function showSamples(runtime: Runtime, transport: KubeTransport, log: Logger): Promise<void> {
  try {
    const files = runtime.functions.map(({ file }) => file);
    await applySamples(files, transport, new Discovery(transport, systemClock), systemClock.now());
  } catch (error) {
    if (!(error instanceof WatchfireError)) throw error;
    log.warn({ error: error.message }, "sample not applied");
  }
}

function bannerOf(runtime: Runtime, cluster: DevCluster): Banner {
  const { functions } = runtime.status();
  const faulty = functions.filter(({ reason }) => reason?.startsWith("WF_"));
  const kubectl = cluster.kubeconfig === undefined ? "kubectl" : `kubectl --kubeconfig ${cluster.kubeconfig}`;
  return {
    version: version(),
    readyMs: performance.now(),
    cluster: cluster.label,
    functions: runtime.functions.map((manifest) => ({
      name: manifest.name,
      triggers: manifest.triggers.map(triggerText),
      handler: relative(process.cwd(), manifest.handler),
      limits: limitsText(manifest),
    })),
    hints: [
      ["kubectl", `${kubectl} get configmaps -A`],
      ["status", `${runtime.url}/status`],
      ...faulty.map(({ name }) => ["disabled", `${name}, see above`] as const),
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

function version(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
