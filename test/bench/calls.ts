// npm run bench:calls -- [seconds]: the costs of a handler with one `ctx.kube.patch` a change, next to client-node's Watch and
// client on the same API server (KUBEBUILDER_ASSETS, otherwise the embedded one). Prints CPU time of all processes at 60 changes
// a second, and changes a second at the default `concurrency`, for each round and as medians. CALLS_ROUNDS: number of rounds;
// CALLS_PROFILE: a folder for CPU profiles of Watchfire's main process.
import { type ChildProcess, fork } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { startTarget } from "../target/target.ts";
import { until } from "../tools/until.ts";
import { MeasuredRuntime } from "./measured-runtime.ts";
import { usageOf } from "./process-tree.ts";

const seconds = Number(process.argv[2] ?? 10);
const rounds = Number(process.env.CALLS_ROUNDS ?? 3);
const perSecond = 60;
const sources = 600;
/** Number of concurrent requests that write changes. */
const writers = 32;

interface Contestant {
  readonly name: string;
  readonly namespace: string;
  readonly pid: number;
  readonly stop: () => Promise<void>;
}

interface Figures {
  readonly cpuMs: number[];
  readonly perSecond: number[];
}

const print = (line: string) => process.stdout.write(`${line}\n`);
const work = await mkdtemp(join(tmpdir(), "watchfire-calls-"));
const real = process.env.KUBEBUILDER_ASSETS !== undefined;
const target = await startTarget(real ? "real" : "embedded");
const admin = new Client(target.access);
const kubeconfig = join(work, "kubeconfig");
await writeFile(kubeconfig, kubeconfigOf(target.access));
let version = 0;

const contestants: Contestant[] = [];
try {
  print(`${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, ${real ? "a real" : "the embedded"} API server`);
  contestants.push(await watchfire("calls-watchfire"), await clientNode("calls-client-node"));
  const figures = new Map<Contestant, Figures>(contestants.map((each) => [each, { cpuMs: [], perSecond: [] }]));
  for (const each of contestants) await burst(each); // compiles their code
  for (let round = 0; round < rounds; round++) {
    for (const [each, { cpuMs, perSecond: rates }] of figures) {
      cpuMs.push(await paced(each));
      rates.push(await burst(each));
    }
  }
  const [ours, peer] = [...figures.values()];
  for (const [{ name }, { cpuMs, perSecond: rates }] of figures) {
    print(`${name.padEnd(12)} CPU ms a change: ${row(cpuMs, 2)}   changes/s: ${row(rates, 0)}`);
  }
  if (ours && peer) {
    const ratio = (of: keyof Figures) => (median(ours[of]) / median(peer[of])).toFixed(2);
    print(`x client-node: ${ratio("cpuMs")} of its CPU, ${ratio("perSecond")} of its changes a second`);
  }
} finally {
  for (const { stop } of contestants) await stop();
  await admin.close();
  await target.close();
  await rm(work, { recursive: true, force: true });
}

/** Milliseconds of CPU per change, of all its processes, at a steady pace. */
async function paced(contestant: Contestant): Promise<number> {
  const before = usageOf(contestant.pid).cpuMs;
  const count = perSecond * seconds;
  version++;
  const began = performance.now();
  const writes: Promise<unknown>[] = [];
  for (let index = 0; index < count; index++) {
    await pause(began + (index * 1000) / perSecond - performance.now());
    writes.push(change(contestant, index % sources));
  }
  await Promise.all(writes);
  await level(contestant, Math.min(count, sources));
  return (usageOf(contestant.pid).cpuMs - before) / count;
}

/** Changes per second, from the first write to the last copy, if the sources are written as fast as the API server accepts it. */
async function burst(contestant: Contestant): Promise<number> {
  version++;
  const began = performance.now();
  const left = Array.from({ length: sources }, (_, index) => index);
  const write = async () => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) await change(contestant, index);
  };
  await Promise.all(Array.from({ length: writers }, write));
  await level(contestant, sources);
  return (sources * 1000) / (performance.now() - began);
}

function change({ namespace }: Contestant, index: number): Promise<unknown> {
  return admin.patch(`${pathOf(namespace)}/source-${index}`, { data: { version: String(version) } });
}

/** Resolves when the first `count` copies have the current version. */
async function level({ name, namespace }: Contestant, count: number): Promise<void> {
  await until(
    `${name} has copied all`,
    60_000,
    async () => {
      const { items } = await admin.get(pathOf(namespace), { labelSelector: "role=copy" });
      return items.filter(({ data }) => data.version === String(version)).length >= count;
    },
    50,
  );
}

async function makeObjects(namespace: string): Promise<void> {
  await admin.post("/api/v1/namespaces", { metadata: { name: namespace } });
  for (let index = 0; index < sources; index++) {
    for (const role of ["source", "copy"]) {
      const metadata = { name: `${role}-${index}`, labels: { role } };
      await admin.post(pathOf(namespace), { metadata, data: { version: "0" } });
    }
  }
}

function pathOf(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps`;
}

async function watchfire(namespace: string): Promise<Contestant> {
  await makeObjects(namespace);
  const folder = join(work, "watchfire");
  await mkdir(join(folder, "functions/copy"), { recursive: true });
  const configMaps = { apiGroups: [""], resources: ["configmaps"], namespaces: [namespace] };
  const manifest = {
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name: "copy" },
    spec: {
      handler: "./handler.ts",
      triggers: [
        {
          name: "sources",
          watch: {
            apiVersion: "v1",
            kind: "ConfigMap",
            labelSelector: { matchLabels: { role: "source" } },
            namespaceSelector: { matchNames: [namespace] },
            initialEvents: "Skip",
          },
        },
      ],
      permissions: [{ ...configMaps, verbs: ["patch"] }],
    },
  };
  await writeFile(join(folder, "functions/copy/function.yaml"), JSON.stringify(manifest));
  await writeFile(
    join(folder, "functions/copy/handler.ts"),
    `export default async ({ object: { metadata, data } }, { kube }) => {
      const { namespace, name } = metadata;
      await kube.patch({ apiVersion: "v1", kind: "ConfigMap", namespace, name: name.replace("source", "copy") }, { data });
    };`,
  );
  const { CALLS_PROFILE: into } = process.env;
  const nodeFlags = into ? ["--cpu-prof", `--cpu-prof-dir=${into}`] : [];
  const runtime = await MeasuredRuntime.start({ folder, kubeconfig, watches: [], initialEvents: "Skip", nodeFlags });
  await runtime.ready(60_000);
  return { name: "watchfire", namespace, pid: runtime.pid, stop: () => runtime.stop() };
}

async function clientNode(namespace: string): Promise<Contestant> {
  await makeObjects(namespace);
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const child: ChildProcess = fork(join(import.meta.dirname, "client-node-calls.ts"), [namespace], { env });
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.kill()) await ended;
  };
  return { name: "client-node", namespace, pid: child.pid ?? 0, stop };
}

function row(values: readonly number[], digits: number): string {
  return `${median(values).toFixed(digits)} (${values.map((value) => value.toFixed(digits)).join(" ")})`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function pause(ms: number): Promise<void> {
  return ms <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}
