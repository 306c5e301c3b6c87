import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ClusterProcess, RuntimeProcess } from "../../tools/watchfire-process.ts";

/** A function's files by their names. */
export type Files = Readonly<Record<string, string>>;

/** Objects in the namespace `large` that exist before the runtime starts, and what happens to them. */
export interface Load {
  readonly objects: number;
  /** Size of each object. */
  readonly bytes: number;
  /** `change`: one of them changes twice a second. `delete`: all are deleted at once. */
  readonly fate: "change" | "delete";
}

/** Functions that share a runtime with another, by name, and what happens for them alone. */
export interface Neighbours {
  readonly functions: Readonly<Record<string, Files>>;
  readonly load?: Load;
}

/** Measurements of a function that shares a runtime with others. */
export interface Felt {
  /** Number of changes for the function, and number of those that it received. */
  readonly changes: number;
  readonly told: number;
  /** Time from a change to its handler, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Slowest answer of `/livez`, in milliseconds; 6,000 without an answer. */
  readonly livez: number;
  /** Resident memory of the runtime's process at the end, in bytes. */
  readonly memory: number;
  /** Size of its data folder at the end, in bytes. */
  readonly disk: number;
  /** The runtime's own metrics at the end. */
  readonly metrics: string;
  /** The runtime's status at the end. */
  readonly status: string;
}

const namespace = "tick";
const largeNamespace = "large";
const perSecond = 10;
const livezLimitMs = 6_000;
/** A change that has not been delivered this long after the last change is lost. Milliseconds. */
const patienceMs = 30_000;
/** Number of objects, which are changed in turn. */
const objects = 5;

const innocent: Files = {
  "function.yaml": JSON.stringify({
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name: "innocent" },
    spec: {
      handler: "./handler.ts",
      triggers: [
        {
          name: "ticks",
          watch: { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: [namespace] } },
        },
      ],
    },
  }),
  "handler.ts": `export default async ({ object }, ctx) => {
  // The ConfigMap that every namespace contains is never changed.
  if (object.data.at) ctx.log.info("late", { ms: Date.now() - Number(object.data.at) });
};
`,
};

/** Runs an innocent function together with others for so many seconds, and returns its measurements. */
export async function feltBeside({ functions: others, load }: Neighbours, seconds: number): Promise<Felt> {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-greedy-"));
  const functions = join(folder, "functions");
  for (const [name, files] of Object.entries({ innocent, ...others })) {
    await mkdir(join(functions, name), { recursive: true });
    for (const [file, text] of Object.entries(files)) await writeFile(join(functions, name, file), text);
  }
  const cluster = await ClusterProcess.start(folder);
  const runtime = new RuntimeProcess(folder, cluster.kubeconfig, functions);
  try {
    for (const name of [namespace, largeNamespace])
      await cluster.client.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    if (load) await create(cluster, load);
    await runtime.start();
    const polls = new Polls(runtime);
    const [changes] = await Promise.all([tick(cluster, seconds), load && exert(cluster, load, seconds)]);
    await allTold(runtime.logFile, changes);
    const livez = await polls.end();
    const late = await delays(runtime.logFile);
    const at = (share: number) =>
      late[Math.min(late.length - 1, Math.floor(share * late.length))] ?? Number.POSITIVE_INFINITY;
    const text = async (path: "/metrics" | "/status") => (await runtime.read(path)).text();
    const said = { metrics: await text("/metrics"), status: await text("/status") };
    const memory = Number(/^watchfire_process_resident_memory_bytes (\S+)/m.exec(said.metrics)?.[1]);
    const disk = await bytesBelow(join(folder, "data"));
    return { changes, told: late.length, p50: at(0.5), p99: at(0.99), livez, memory, disk, ...said };
  } finally {
    await runtime.kill();
    await cluster.stop();
    if (process.env.KEEP) process.stdout.write(`kept in ${folder}\n`);
    else await rm(folder, { recursive: true, force: true });
  }
}

/** Total size of a folder's files, some of which may disappear meanwhile. */
async function bytesBelow(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(files.map((file) => stat(join(folder, file)).catch(() => undefined)));
  return sizes.reduce((sum, each) => sum + (each?.isFile() ? each.size : 0), 0);
}

async function tick({ client }: ClusterProcess, seconds: number): Promise<number> {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const at = () => ({ data: { at: String(Date.now()) } });
  for (let object = 0; object < objects; object++)
    await client.post(path, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `t${object}` }, ...at() });
  const count = seconds * perSecond;
  const began = performance.now();
  for (let each = 0; each < count; each++) {
    await pause(Math.max(0, began + (each * 1000) / perSecond - performance.now()));
    await client.patch(`${path}/t${each % objects}`, at());
  }
  return objects + count;
}

const largePath = `/api/v1/namespaces/${largeNamespace}/configmaps`;

async function create({ client }: ClusterProcess, { objects: count, bytes }: Load): Promise<void> {
  const data = { text: "x".repeat(bytes) };
  for (let object = 0; object < count; object++)
    await client.post(largePath, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `l${object}` }, data });
}

async function exert({ client }: ClusterProcess, { objects: count, fate }: Load, seconds: number): Promise<void> {
  const began = performance.now();
  const at = (second: number) => pause(Math.max(0, began + second * 1000 - performance.now()));
  if (fate === "delete") {
    await at(1);
    await client.delete(largePath);
    return;
  }
  for (let half = 1; half < 2 * seconds; half++) {
    await at(half / 2);
    await client.patch(`${largePath}/l${half % count}`, { metadata: { labels: { half: String(half) } } });
  }
}

/** Resolves once all changes were delivered, or after `patienceMs`. */
async function allTold(logFile: string, changes: number): Promise<void> {
  const ends = performance.now() + patienceMs;
  while (performance.now() < ends && (await delays(logFile)).length < changes) await pause(250);
}

/** The delays in milliseconds, sorted. */
async function delays(logFile: string): Promise<number[]> {
  const lines = (await readFile(logFile, "utf8")).split("\n").filter((line) => line.includes('"msg":"late"'));
  return lines.map((line) => Number(JSON.parse(line).fields.ms)).toSorted((a, b) => a - b);
}

/** Polls the runtime's endpoints. */
class Polls {
  private readonly runtime: RuntimeProcess;
  private ended = false;
  private livez = 0;
  private readonly done: Promise<void>;

  constructor(runtime: RuntimeProcess) {
    this.runtime = runtime;
    this.done = this.poll();
  }

  /** Stops polling. Returns the slowest answer in milliseconds. */
  async end(): Promise<number> {
    this.ended = true;
    await this.done;
    return this.livez;
  }

  private async poll(): Promise<void> {
    while (!this.ended) {
      const began = performance.now();
      const answer = this.runtime.read("/livez").then((it) => it.ok);
      const isOk = await Promise.race([answer.catch(() => false), pause(livezLimitMs, false)]);
      this.livez = Math.max(this.livez, isOk ? performance.now() - began : livezLimitMs);
      await pause(100);
    }
  }
}
