// npm run bench:scale: the runtime with 20 sources of 10,000 objects each. Prints the time until it is ready, its memory with
// initial events skipped and delivered, the heap per known object, and the wait of events at a steady pace. SCALE_KINDS,
// SCALE_OBJECTS, SCALE_RATE and SCALE_SECONDS change the size.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../tools/until.ts";
import { heldBytes, inspectFlag } from "./heap.ts";
import { HistogramReading, total } from "./histogram.ts";
import { type FromServer, group, kindOf, type ToServer } from "./many-objects.ts";
import { MeasuredRuntime } from "./measured-runtime.ts";
import { peakRssOf, usageOf } from "./process-tree.ts";

const kinds = Number(process.env.SCALE_KINDS ?? 20);
const objects = Number(process.env.SCALE_OBJECTS ?? 10_000);
const pace = {
  type: "change",
  perSecond: Number(process.env.SCALE_RATE ?? 2000),
  seconds: Number(process.env.SCALE_SECONDS ?? 30),
} as const satisfies ToServer;
const limits = { readySeconds: 30, rssBytes: 400e6, waitSeconds: 0.05 };

const watches = Array.from({ length: kinds }, (_, index) => ({ apiVersion: `${group}/v1`, kind: kindOf(index) }));
const work = await mkdtemp(join(tmpdir(), "watchfire-scale-"));
const print = (line: string) => process.stdout.write(`${line}\n`);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
const verdict = (value: number, limit: number) => {
  if (value >= limit) process.exitCode = 1;
  return value < limit ? "ok" : "TOO MUCH";
};

print(`${kinds} sources of ${objects} objects, ${cpus().length} cores, load average ${loadavg()[0]?.toFixed(1)}`);
try {
  await measured(objects, "Skip", [], async (runtime) => {
    await keepUp(runtime.runtime, runtime.server);
    reportMemory(runtime.runtime);
  });
  await measured(objects, "Deliver", [], async ({ runtime }) => {
    const began = performance.now();
    await until("every object is delivered", 120_000, async () => (await handled(runtime)) >= kinds * objects);
    print(`  all ${kinds * objects} delivered ${seconds(began)} s later`);
    reportMemory(runtime);
  });
  const held: number[] = [];
  for (const count of [0, objects]) {
    await measured(count, "Skip", [inspectFlag], async ({ folder }) => {
      held.push(await heldBytes(join(folder, "runtime.log")));
    });
  }
  const [empty = 0, full = 0] = held;
  const perObject = (full - empty) / (kinds * objects);
  print(
    `heap and buffers: ${megabytes(empty)} with no object, ${megabytes(full)} with all: ${perObject.toFixed(0)} bytes each`,
  );
} finally {
  await rm(work, { recursive: true, force: true });
}

interface Measured {
  readonly runtime: MeasuredRuntime;
  readonly server: ChildProcess;
  readonly folder: string;
}

/** Starts a server and the runtime, prints the time until it is ready, and measures. */
async function measured(
  count: number,
  initialEvents: "Skip" | "Deliver",
  nodeFlags: readonly string[],
  measure: (parts: Measured) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(work, "run-"));
  const kubeconfig = join(folder, "kubeconfig");
  const server = fork(join(import.meta.dirname, "many-objects-server.ts"), [String(kinds), String(count), kubeconfig]);
  try {
    const [listening] = (await once(server, "message")) as [FromServer];
    const bytes = listening.type === "listening" ? listening.objectBytes : 0;
    print(`${kinds} x ${count} objects of ${bytes} bytes, initialEvents: ${initialEvents} ${nodeFlags.join(" ")}`);
    const began = performance.now();
    const runtime = await MeasuredRuntime.start({ folder, kubeconfig, watches, initialEvents, nodeFlags });
    try {
      await runtime.ready(120_000);
      const readySeconds = Number(seconds(began));
      const limit = limits.readySeconds;
      print(`  ready after ${readySeconds} s (< ${limit} s: ${verdict(readySeconds, limit)}), ${memory(runtime)}`);
      await measure({ runtime, server, folder });
    } finally {
      await runtime.stop();
    }
  } finally {
    server.kill();
  }
}

/** Sends changes at a steady pace, and measures the wait of each from its last byte to its handler. */
async function keepUp(runtime: MeasuredRuntime, server: ChildProcess): Promise<void> {
  const before = await runtime.read("/metrics");
  const cpuBefore = usageOf(runtime.pid);
  const began = performance.now();
  server.send(pace);
  await once(server, "message");
  const sentAfter = seconds(began);
  const count = pace.perSecond * pace.seconds;
  await until("every change is handled", 60_000, async () => (await handled(runtime)) >= count);
  const after = await runtime.read("/metrics");
  const cpu = usageOf(runtime.pid);
  const reading = (name: string) => HistogramReading.of(after, name).since(HistogramReading.of(before, name));
  const waits = reading("watchfire_event_wait_seconds");
  const commits = reading("watchfire_checkpoint_commit_duration_seconds");
  const rows = total(after, "watchfire_checkpoint_rows_total") - total(before, "watchfire_checkpoint_rows_total");
  const p99 = waits.atMost(0.99);
  const within = (waits.shareWithin(limits.waitSeconds) * 100).toFixed(3);
  print(`  ${count} changes sent in ${sentAfter} s, all handled after ${seconds(began)} s`);
  print(
    `  wait from last byte to handler: p50 <= ${waits.atMost(0.5) * 1000} ms, p99 <= ${p99 * 1000} ms (< 50 ms: ${p99 <= limits.waitSeconds ? "ok" : "TOO MUCH"})`,
  );
  print(
    `    ${within} % within 50 ms, mean ${((waits.sum / waits.count) * 1000).toFixed(2)} ms, of ${waits.count} waits`,
  );
  print(
    `  checkpoint: ${commits.count} commits of ${(rows / commits.count).toFixed(0)} rows, ${((commits.sum / commits.count) * 1000).toFixed(1)} ms each, p99 <= ${commits.atMost(0.99) * 1000} ms; ${((commits.sum / Number(seconds(began))) * 100).toFixed(1)} % of the time in a commit`,
  );
  print(
    `  CPU: ${((cpu.ownCpuMs - cpuBefore.ownCpuMs) / Number(sentAfter) / 10).toFixed(0)} % of a core in the parent, ${((cpu.cpuMs - cpuBefore.cpuMs) / Number(sentAfter) / 10).toFixed(0)} % in all; load average ${loadavg()[0]?.toFixed(1)}`,
  );
  if (p99 > limits.waitSeconds) process.exitCode = 1;
}

async function handled(runtime: MeasuredRuntime): Promise<number> {
  return total(await runtime.read("/metrics"), "watchfire_handler_duration_seconds_count");
}

function reportMemory(runtime: MeasuredRuntime): void {
  const limit = limits.rssBytes;
  print(`  at the end ${memory(runtime)} (parent < ${megabytes(limit)}: ${verdict(peakRssOf(runtime.pid), limit)})`);
}

function memory(runtime: MeasuredRuntime): string {
  const { peakRssBytes, processes } = usageOf(runtime.pid);
  return `peak RSS ${megabytes(peakRssOf(runtime.pid))} in the parent, ${megabytes(peakRssBytes)} in all ${processes}`;
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(2);
}
