// npm run bench:idle -- [minutes]: the runtime watches ten kinds of an idle embedded cluster. Prints each reconnect with its
// cause and the connection's age, and the number of connections.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessOf } from "../target/kubeconfig.ts";
import { ClusterProcess } from "../tools/watchfire-process.ts";
import { connectionsTo } from "./connections.ts";
import { MeasuredRuntime } from "./measured-runtime.ts";
import { treeOf } from "./process-tree.ts";

const minutes = Number(process.argv[2] ?? 15);
/**
 * The shortest `timeoutSeconds` that a source requests (client-go's minWatchTimeout): no source may reconnect earlier.
 */
const shortestS = 300;
const sampleMs = 1000;
const watches = [
  ...["ConfigMap", "LimitRange", "Pod", "Service", "ServiceAccount", "Node"].map((kind) => ({
    apiVersion: "v1",
    kind,
  })),
  ...["Deployment", "StatefulSet", "DaemonSet"].map((kind) => ({ apiVersion: "apps/v1", kind })),
  { apiVersion: "batch/v1", kind: "Job" },
];

interface SourceStatus {
  readonly kind: string;
  readonly reconnects: number;
  readonly state: string;
}

const print = (line: string) => process.stdout.write(`${line}\n`);
const folder = await mkdtemp(join(tmpdir(), "watchfire-idle-"));
const cluster = await ClusterProcess.start(folder);
const { kubeconfig } = cluster;
const port = Number(new URL((await accessOf(kubeconfig)).url).port);
const runtime = await MeasuredRuntime.start({ folder, kubeconfig, watches, initialEvents: "Skip" });
let tooEarly = 0;
let most = 0;
let reconnects = 0;
let kept = false;
try {
  await runtime.ready(60_000);
  const began = performance.now();
  const connectedAt = new Map(watches.map(({ kind }) => [kind, { at: began, reconnects: 0 }]));
  while (performance.now() - began < minutes * 60_000) {
    const now = performance.now();
    most = Math.max(most, connectionsTo(port, treeOf(runtime.pid)));
    const { sources } = JSON.parse(await runtime.read("/status")) as { readonly sources: readonly SourceStatus[] };
    for (const source of sources) {
      const last = connectedAt.get(source.kind);
      if (!last || source.reconnects === last.reconnects) continue;
      const lastedS = (now - last.at) / 1000;
      const early = lastedS < shortestS - sampleMs / 1000;
      reconnects += source.reconnects - last.reconnects;
      if (early) tooEarly += source.reconnects - last.reconnects;
      print(`${source.kind} reconnected after ${lastedS.toFixed(0)} s${early ? ": too early" : ""}`);
      connectedAt.set(source.kind, { at: now, reconnects: source.reconnects });
    }
    await new Promise((resolve) => setTimeout(resolve, sampleMs));
  }
  const metrics = await runtime.read("/metrics");
  print("");
  print(`${watches.length} idle sources for ${minutes} min: ${reconnects} reconnects, ${tooEarly} of them too early`);
  for (const line of metrics.match(/^watchfire_watch_reconnects_total\{.*$/gm) ?? []) print(`  ${line}`);
  const bookmarks = [...metrics.matchAll(/^watchfire_watch_events_total\{.*type="Bookmark".*\} (\d+)$/gm)];
  print(`bookmarks received: ${bookmarks.reduce((sum, [, count]) => sum + Number(count), 0)}`);
  print(`connections to the API server: at most ${most}, ${watches.length + 2} allowed`);
  process.exitCode = tooEarly > 0 || most > watches.length + 2 ? 1 : 0;
} catch (error) {
  kept = true;
  print(`stopped at ${new Date().toISOString()}: the runtime's exit was ${runtime.exit}; its log is kept in ${folder}`);
  throw error;
} finally {
  await runtime.stop();
  await cluster.stop();
  if (!kept) await rm(folder, { recursive: true, force: true });
}
