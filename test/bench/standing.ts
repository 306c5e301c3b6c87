// npm run bench:standing -- [rows]: measures costs that do not depend on events: the time of a start and of one after kill -9,
// the memory of one function and of 1,000, and a scrape of 2,000. Exit status 1 if a figure is beyond its limit. If
// KUBEBUILDER_ASSETS names a real API server, starts are measured on it. Arguments select rows by their names. The program is the
// package that users install. STANDING_ROUNDS: number of measured starts; the fastest counts, since other work can only make a
// start slower.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { noStates } from "../../deploy/dashboard/known-metrics.ts";
import { packAll } from "../../deploy/npm/pack.ts";
import { output } from "../../deploy/npm/packages.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { startTarget } from "../target/target.ts";
import { watchLoopLag } from "../tools/loop-lag.ts";
import { until } from "../tools/until.ts";
import { total } from "./histogram.ts";
import { group, kindOf, type ToServer } from "./many-objects.ts";
import { MeasuredRuntime } from "./measured-runtime.ts";
import { usageOf } from "./process-tree.ts";

const rounds = Number(process.env.STANDING_ROUNDS ?? 5);
const chosen = process.argv.slice(2);
const load = { type: "change", perSecond: 1000, seconds: 10 } as const satisfies ToServer;
const configMaps = [{ apiVersion: "v1", kind: "ConfigMap" }];
/** Polling interval of readiness during a measured start, in milliseconds. */
const closePollMs = 10;
/** Wait after a start, so that its remaining work is done before idle figures are measured. Milliseconds. */
const settleMs = 5_000;
/** Wait after a load, in milliseconds: unused memory is released within 15 s. */
const reclaimMs = 20_000;

interface Row {
  readonly name: string;
  readonly unit: "ms" | "MB" | "s";
  /** The figure on commit 3b6b8ab, if it was measured. */
  readonly before: string;
  readonly floor: number;
  readonly aim: number;
  readonly measure: () => Promise<Figure>;
}

interface Figure {
  readonly value: number;
  /** CPU milliseconds of all processes, or words: figures that depend less on other work of the machine. */
  readonly beside: string;
}

const print = (line: string) => process.stdout.write(`${line}\n`);
const cell = (text: string) => text.padStart(12);
const work = await mkdtemp(join(tmpdir(), "watchfire-standing-"));
const real = process.env.KUBEBUILDER_ASSETS !== undefined;
const target = await startTarget(real ? "real" : "embedded");
const kubeconfig = join(work, "kubeconfig");
await writeFile(kubeconfig, kubeconfigOf(target.access));

const noLetters = { count: 0, bytes: 0, withoutBody: 0, lettersDropped: 0, bodiesDropped: 0 };
let ofThousand: { readonly ready: Figure; readonly rss: Figure } | undefined;

/** The output of `npm install`. It is next to the checkout's packages, so that it finds esbuild and isolated-vm. */
const program = join(output, "runtime/bin/watchfire.js");

const rows: readonly Row[] = [
  { name: "start, 10 functions", unit: "ms", before: "792-946", floor: 700, aim: 500, measure: () => starts("first") },
  { name: "after kill -9", unit: "ms", before: "1200-2100", floor: 1000, aim: 600, measure: () => starts("killed") },
  { name: "memory, idle", unit: "MB", before: "", floor: 220, aim: 200, measure: () => memory("idle") },
  { name: "memory, after load", unit: "MB", before: "", floor: 220, aim: 200, measure: () => memory("loaded") },
  { name: "1,000 idle: ready", unit: "s", before: "", floor: 5, aim: 5, measure: async () => (await thousand()).ready },
  {
    name: "1,000 idle: memory",
    unit: "MB",
    before: "",
    floor: 3000,
    aim: 1000,
    measure: async () => (await thousand()).rss,
  },
  { name: "scrape of 2,000", unit: "ms", before: "600-1200", floor: 50, aim: 10, measure: scrape },
];

try {
  await packAll(join(work, "packages"));
  print(
    `${cpus().length} cores, load average ${loadavg()[0]?.toFixed(1)}, ${real ? "a real" : "the embedded"} API server`,
  );
  print(["".padEnd(22), ...["before", "now", "floor", "aim"].map(cell)].join(""));
  for (const { name, unit, before, floor, aim, measure } of rows) {
    if (chosen.length > 0 && !chosen.some((word) => name.includes(word))) continue;
    const { value, beside } = await measure();
    if (value > floor) process.exitCode = 1;
    const figures = [before, value.toFixed(unit === "s" ? 1 : 0), String(floor), String(aim)].map(cell).join("");
    print(`${name.padEnd(22)}${figures} ${unit}${value > floor ? ", BEYOND ITS FLOOR" : ""}; ${beside}`);
  }
} finally {
  await target.close();
  await rm(work, { recursive: true, force: true });
}

/** Time from the command to `/readyz`, with an empty data folder or with that of a killed runtime. */
async function starts(which: "first" | "killed"): Promise<Figure> {
  const options = { kubeconfig, watches: configMaps, functions: 10, initialEvents: "Skip", program } as const;
  const figures: { ms: number; cpuMs: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const folder = await mkdtemp(join(work, "start-"));
    if (which === "killed") {
      const before = await MeasuredRuntime.start({ ...options, folder });
      await before.ready(30_000);
      await before.stop("SIGKILL");
    }
    const began = performance.now();
    const runtime = await MeasuredRuntime.start({ ...options, folder });
    await runtime.ready(30_000, closePollMs);
    figures.push({ ms: performance.now() - began, cpuMs: usageOf(runtime.pid).cpuMs });
    await runtime.stop();
  }
  const sorted = figures.map(({ ms }) => ms).sort((a, b) => a - b);
  const cpuMs = Math.min(...figures.map((figure) => figure.cpuMs));
  return {
    value: sorted[0] ?? Number.NaN,
    beside: `${sorted.map((ms) => ms.toFixed(0)).join(" ")}; ${cpuMs.toFixed(0)} ms of CPU`,
  };
}

/** Resident sets of all processes, with one function that watches 1,000 objects. */
async function memory(when: "idle" | "loaded"): Promise<Figure> {
  const folder = await mkdtemp(join(work, "memory-"));
  const served = join(folder, "kubeconfig");
  const server = fork(join(import.meta.dirname, "many-objects-server.ts"), ["1", "1000", served]);
  try {
    await once(server, "message");
    const watches = [{ apiVersion: `${group}/v1`, kind: kindOf(0) }];
    const runtime = await MeasuredRuntime.start({
      folder,
      kubeconfig: served,
      watches,
      initialEvents: "Skip",
      program,
    });
    try {
      await runtime.ready(30_000);
      if (when === "loaded") {
        server.send(load);
        await once(server, "message");
        const handled = async () => total(await runtime.read("/metrics"), "watchfire_handler_duration_seconds_count");
        await until("all is handled", 60_000, async () => (await handled()) >= load.perSecond * load.seconds);
      }
      await pause(when === "loaded" ? reclaimMs : settleMs);
      return resident(runtime);
    } finally {
      await runtime.stop();
    }
  } finally {
    server.kill();
  }
}

/** 1,000 functions on one kind without changes. */
async function thousand(): Promise<NonNullable<typeof ofThousand>> {
  if (ofThousand) return ofThousand;
  const folder = await mkdtemp(join(work, "thousand-"));
  const options = { folder, kubeconfig, watches: configMaps, functions: 1000, initialEvents: "Skip", program } as const;
  await MeasuredRuntime.write(options);
  const began = performance.now();
  const runtime = await MeasuredRuntime.start(options);
  try {
    await runtime.ready(120_000);
    const ready = { value: (performance.now() - began) / 1000, beside: `${usageOf(runtime.pid).cpuMs} ms of CPU` };
    await pause(settleMs);
    ofThousand = { ready, rss: resident(runtime) };
    return ofThousand;
  } finally {
    await runtime.stop();
  }
}

function resident(runtime: MeasuredRuntime): Figure {
  const { rssBytes, peakRssBytes, processes } = usageOf(runtime.pid);
  return {
    value: rssBytes / 1e6,
    beside: `${(peakRssBytes / 1e6).toFixed(0)} MB at the highest, ${processes} processes`,
  };
}

/** The event loop's longest pause during a scrape of 2,000 functions that have had events of each type. */
async function scrape(): Promise<Figure> {
  const metrics = new Metrics();
  const functions = Array.from({ length: 2000 }, (_, index) => `function-${index}`);
  const states = {
    ...noStates,
    functions: () =>
      functions.map((name) => ({
        name,
        isPaused: false,
        lagSeconds: 0,
        dueSeconds: 0,
        spilled: 0,
        queued: 0,
        inFlight: 0,
        letterStock: noLetters,
        parentSeconds: new Map(),
      })),
    standings: () => functions.map((name) => ({ name, ready: false, reason: "BuildFailed" })),
  };
  for (const name of functions) {
    metrics.dispatch.attempt?.(name, "trigger", 1);
    metrics.dispatch.handled?.(name, "trigger", 1);
    for (const type of ["Added", "Modified", "Deleted"] as const) metrics.dispatch.event?.(name, "trigger", type, "ok");
    metrics.access.called({ function: name, operation: "kube.patch", result: "ok", durationMs: 1 });
  }
  const pauses: number[] = [];
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    await pause(20);
    const lag = watchLoopLag();
    await pause(20);
    bytes = (await metrics.text(states)).length;
    await pause(20);
    pauses.push(lag.stop());
  }
  return { value: Math.min(...pauses), beside: `${(bytes / 1e6).toFixed(1)} MB of text` };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
