// npm run compare: the same small controller on Watchfire, controller-runtime and kopf, on a real API server
// (KUBEBUILDER_ASSETS). A Site owns a Deployment and a ConfigMap, with a finalizer and a condition. Prints each controller's
// lines of code, requests per change, CPU, and the time until 1,000 changes are reconciled. The other two require Go and Python.
import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { usersFlags, usersVariables } from "../bench/measured-runtime.ts";
import { usageOf } from "../bench/process-tree.ts";
import { Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { startTarget } from "../target/target.ts";
import { goProgram, pythonPrograms } from "../tools/toolchains.ts";
import { Hopeless, until } from "../tools/until.ts";

const count = Number(process.env.SITES ?? 1000);
const limitMs = Number(process.env.LIMIT_MS ?? 600_000);
/** Number of concurrent requests that make the changes. */
const writers = 32;
const here = import.meta.dirname;
const group = "/apis/compare.example/v1";

interface Contestant {
  readonly name: string;
  /** The files that its author writes. */
  readonly files: readonly string[];
  /** Builds the command to run; `undefined` if its tools are missing. */
  readonly command: (work: string) => readonly string[] | undefined;
}

const contestants: readonly Contestant[] = [
  {
    name: "watchfire",
    files: ["watchfire/handler.ts", "watchfire/function.yaml"],
    command: (work) => [
      process.execPath,
      ...usersFlags,
      join(here, "../../runtime/bin/watchfire.js"),
      ...["start", "--functions", join(here, "watchfire"), "--data", join(work, "data"), "--listen", "127.0.0.1:0"],
    ],
  },
  {
    name: "controller-runtime",
    files: ["controller-runtime/main.go"],
    command: (work) => {
      const program = goProgram(join(here, "controller-runtime"), join(work, "controller"));
      return program === undefined ? undefined : [program];
    },
  },
  {
    name: "kopf",
    files: ["kopf/controller.py"],
    command: (work) => {
      const programs = pythonPrograms(join(here, "kopf/requirements.txt"), join(work, "python"));
      if (programs === undefined) return undefined;
      return [join(programs, "kopf"), "run", "--all-namespaces", join(here, "kopf/controller.py")];
    },
  },
];

const chosen = process.argv.slice(2);
const print = (line: string) => process.stdout.write(`${line}\n`);
const columns = ["lines", "1,000 made", "1,000 changed", "requests/change", "CPU/change", "1,000 deleted", "RSS"];
const work = await mkdtemp(join(tmpdir(), "watchfire-compare-"));
const target = await startTarget("real");
const admin = new Client(target.access);
try {
  const crd = parse(await readFile(join(here, "site-crd.yaml"), "utf8"));
  await admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
  await until("Sites are served", 60_000, async () => (await admin.reply("GET", `${group}/sites`)).status === 200);
  print(["".padEnd(20), ...columns.map((column) => column.padStart(16))].join(""));
  for (const contestant of contestants) {
    if (chosen.length > 0 && !chosen.includes(contestant.name)) continue;
    const command = contestant.command(work);
    if (command) await measure(contestant, command);
    else print(`${contestant.name.padEnd(20)} left out: its tools are not here`);
  }
} finally {
  await admin.close();
  await target.close();
  await rm(work, { recursive: true, force: true });
}

async function measure({ name, files }: Contestant, [program = "", ...args]: readonly string[]): Promise<void> {
  const namespace = `compare-${name}`;
  await admin.post("/api/v1/namespaces", { metadata: { name: namespace } });
  const user = await account(namespace);
  const env = { ...process.env, ...usersVariables, KUBECONFIG: await kubeconfig(user) };
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(join(work, `${name}.log`));
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  try {
    const sites = Array.from({ length: count }, (_, index) => `site-${index}`);
    const path = `${group}/namespaces/${namespace}/sites`;
    const site = (each: string) => ({
      apiVersion: "compare.example/v1",
      kind: "Site",
      metadata: { name: each },
      spec: { image: "site:1", replicas: 1 },
    });
    const made = await timed(
      child,
      () => each(sites, (one) => admin.post(path, site(one))),
      () => isLevel(namespace, "site:1"),
    );
    await quiet(namespace);
    const requestsBefore = await requests(namespace);
    const cpuBefore = usageOf(child.pid ?? 0).cpuMs;
    const changed = await timed(
      child,
      () => each(sites, (one) => admin.patch(`${path}/${one}`, { spec: { image: "site:2" } })),
      () => isLevel(namespace, "site:2"),
    );
    await quiet(namespace);
    const asked = (await requests(namespace)) - requestsBefore;
    const usage = usageOf(child.pid ?? 0);
    const cpuMs = usage.cpuMs - cpuBefore;
    const deleted = await timed(
      child,
      () => admin.delete(path).then(() => undefined),
      async () => (await admin.get(path, { limit: 1 })).items.length === 0,
    );
    const figures = [
      String(await linesOf(files)),
      seconds(made),
      seconds(changed),
      (asked / count).toFixed(2),
      `${(cpuMs / count).toFixed(2)} ms`,
      seconds(deleted),
      `${(usage.rssBytes / 1e6).toFixed(0)} MB`,
    ];
    print([name.padEnd(20), ...figures.map((figure) => figure.padStart(16))].join(""));
  } catch (error) {
    print((await readFile(join(work, `${name}.log`), "utf8")).split("\n").slice(-10).join("\n"));
    throw error;
  } finally {
    child.kill("SIGTERM");
    if (child.exitCode === null) await new Promise((resolve) => child.once("exit", resolve));
  }
}

/** True if all owned objects match their Sites. */
async function isLevel(namespace: string, image: string): Promise<boolean> {
  const { items: sites } = await admin.get(`${group}/namespaces/${namespace}/sites`);
  const isTold = (each: (typeof sites)[number]) =>
    each.spec.image === image && each.status?.observedGeneration === each.metadata.generation;
  if (sites.length < count || !sites.every(isTold)) return false;
  const { items: deployments } = await admin.get(`/apis/apps/v1/namespaces/${namespace}/deployments`);
  const { items: configs } = await admin.get(`/api/v1/namespaces/${namespace}/configmaps`);
  return (
    deployments.filter(({ spec }) => spec.template.spec.containers[0].image === image).length === count &&
    configs.filter(({ data }) => data?.image === image).length === count
  );
}

/** Milliseconds from the first write until everything is reconciled. */
async function timed(
  child: ChildProcess,
  write: () => Promise<unknown>,
  level: () => Promise<boolean>,
): Promise<number> {
  const began = performance.now();
  await write();
  const isLevel = () => {
    if (child.exitCode !== null) throw new Hopeless(`the controller ended with ${child.exitCode}`);
    return level();
  };
  await until("all is level", limitMs, isLevel, 200);
  return performance.now() - began;
}

/** Waits until the controller sends no more requests. */
async function quiet(namespace: string): Promise<void> {
  let before = -1;
  await until(
    "nothing more is asked",
    60_000,
    async () => {
      const now = await requests(namespace);
      const same = now === before;
      before = now;
      return same;
    },
    3_000,
  );
}

/** Number of requests of the contestant's account so far, except watches and its own Leases. */
async function requests(namespace: string): Promise<number> {
  const user = `"username":"system:serviceaccount:${namespace}:controller"`;
  const lines = (await readFile(target.auditLog ?? "", "utf8")).split("\n");
  return lines.filter((line) => line.includes(user) && !line.includes('"verb":"watch"')).length;
}

async function each(names: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> {
  const left = [...names];
  const writer = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) await work(name);
  };
  await Promise.all(Array.from({ length: writers }, writer));
}

/** Creates a ServiceAccount with all rights for the contestant. Returns its token. */
async function account(namespace: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await admin.post(path, { metadata: { name: "controller" } });
  await admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: namespace },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "ServiceAccount", name: "controller", namespace }],
  });
  const { status } = await admin.post(`${path}/controller/token`, { spec: {} });
  return status.token;
}

async function kubeconfig(token: string): Promise<string> {
  const file = join(work, `kubeconfig-${token.length}-${token.slice(-8).replace(/\W/g, "")}`);
  await writeFile(file, kubeconfigOf({ ...target.access, token }), { mode: 0o600 });
  return file;
}

/** Lines that are neither empty nor a comment. */
async function linesOf(files: readonly string[]): Promise<number> {
  const texts = await Promise.all(files.map((file) => readFile(join(here, file), "utf8")));
  return texts
    .join("\n")
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\s*(?:\/\/|#)/.test(line)).length;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
