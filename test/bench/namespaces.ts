// npm run bench:namespaces: ten functions select 2,000 namespaces by a label, with 200,000 objects in them. Polls /livez all the
// time, as a kubelet does but far more often, and prints the slowest answer of each part. The parts are a first start, namespaces
// that are deselected and selected again, and a restart. Fails if an answer takes a second. NAMESPACES, NAMESPACES_OBJECTS,
// NAMESPACES_FUNCTIONS and NAMESPACES_LEAVING change the size.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Status } from "../../runtime/host/status.ts";
import { until } from "../tools/until.ts";
import { total } from "./histogram.ts";
import { group, kindOf } from "./many-objects.ts";
import { MeasuredRuntime } from "./measured-runtime.ts";
import { peakRssOf } from "./process-tree.ts";

const namespaces = Number(process.env.NAMESPACES ?? 2000);
const objects = Number(process.env.NAMESPACES_OBJECTS ?? 200_000);
const functions = Number(process.env.NAMESPACES_FUNCTIONS ?? 10);
const leaving = Number(process.env.NAMESPACES_LEAVING ?? 50);
const initialEvents = process.env.NAMESPACES_INITIAL === "Deliver" ? "Deliver" : "Skip";
const flags = (process.env.NAMESPACES_NODE_FLAGS ?? "").split(" ").filter(Boolean);
/** Limit of an answer in milliseconds. A slower one would cost a Lease, or restart the pod. */
const limitMs = 1000;
/** Polling interval in milliseconds. /readyz and /metrics are read about as often as by a kubelet and a scraper. */
const livezMs = 20;
const readyzMs = 1000;
const metricsMs = 15_000;

const watches = [{ apiVersion: `${group}/v1`, kind: kindOf(0), namespaceLabels: { team: "yes" } }];
const folder = await mkdtemp(join(tmpdir(), "watchfire-namespaces-"));
const kubeconfig = join(folder, "kubeconfig");
const print = (line: string) => process.stdout.write(`${line}\n`);

print(`${functions} functions, ${namespaces} namespaces, ${objects} objects, initialEvents: ${initialEvents}`);
print(`${cpus().length} cores, load average ${loadavg()[0]?.toFixed(1)}`);
const program = join(import.meta.dirname, "many-objects-server.ts");
const server = fork(program, ["1", String(objects), kubeconfig, String(namespaces)]);
try {
  await once(server, "message");
  await running(async (runtime) => {
    await part("first start", runtime, async () => {
      await settled(runtime);
      const expected = initialEvents === "Deliver" ? functions * objects : 0;
      await until("every object is delivered", 900_000, async () => (await handled(runtime)) >= expected, 500);
    });
    const moved = (functions * leaving * objects) / namespaces;
    for (const type of ["leave", "return"] as const) {
      const before = await handled(runtime);
      await part(`${leaving} namespaces ${type}`, runtime, async () => {
        await tell(server, { type, namespaces: leaving });
        await until("all of it is told", 300_000, async () => (await handled(runtime)) >= before + moved, 500);
      });
    }
  });
  await running((runtime) => part("restart", runtime, () => settled(runtime)));
} finally {
  server.kill();
  await rm(folder, { recursive: true, force: true });
}

async function running(measure: (runtime: MeasuredRuntime) => Promise<void>): Promise<void> {
  const pauses = join(import.meta.dirname, "loop-pauses.ts");
  const nodeFlags = [`--import=${pauses}`, ...flags];
  const env = { LOOP_PAUSES: join(folder, "pauses") };
  // Removes the pauses that the previous runtime wrote at its end.
  await rm(env.LOOP_PAUSES, { force: true });
  const runtime = await MeasuredRuntime.start({
    folder,
    kubeconfig,
    watches,
    initialEvents,
    functions,
    nodeFlags,
    env,
  });
  try {
    await measure(runtime);
  } finally {
    await runtime.stop();
  }
}

/** Resolves when the runtime is ready and each source is connected. */
async function settled(runtime: MeasuredRuntime): Promise<void> {
  await runtime.ready(600_000);
  const watching = async () => {
    const { sources } = JSON.parse(await runtime.read("/status")) as Status;
    return sources.length > namespaces && sources.every(({ state }) => state === "watching");
  };
  await until("every source watches", 300_000, watching, 1000);
}

/** Runs a part, and prints its duration and the longest stall of /livez and of the event loop. */
async function part(what: string, runtime: MeasuredRuntime, act: () => Promise<void>): Promise<void> {
  const over = new AbortController();
  const began = performance.now();
  const asking = (["/livez", "/readyz", "/metrics"] as const).map((path, index) =>
    ask(runtime, path, [livezMs, readyzMs, metricsMs][index] ?? livezMs, over.signal),
  );
  await act();
  const tookMs = performance.now() - began;
  over.abort();
  const [livez, readyz, metrics] = await Promise.all(asking);
  print(`${what}: ${(tookMs / 1000).toFixed(1)} s, load average ${loadavg()[0]?.toFixed(1)}`);
  for (const [path, answers] of Object.entries({ "/livez": livez, "/readyz": readyz, "/metrics": metrics })) {
    const worst = answers?.at(-1) ?? Number.NaN;
    const p99 = answers?.[Math.floor(answers.length * 0.99)] ?? Number.NaN;
    print(`  ${path}: ${answers?.length} answers, longest ${worst.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`);
  }
  if ((livez?.at(-1) ?? 0) > limitMs) process.exitCode = 1;
  const sockets = /^watchfire_nodejs_active_resources\{type="TCPSocketWrap"\} (\d+)$/m.exec(
    await runtime.read("/metrics"),
  )?.[1];
  print(`  the event loop's longest pauses: ${await longestPauses()}`);
  print(`  ${sockets} sockets, peak RSS of the parent ${(peakRssOf(runtime.pid) / 1e6).toFixed(0)} MB`);
}

/**
 * Polls an endpoint, one request after the other. Returns the sorted durations in milliseconds. Begins once the runtime listens.
 */
async function ask(
  runtime: MeasuredRuntime,
  path: "/livez" | "/readyz" | "/metrics",
  everyMs: number,
  signal: AbortSignal,
): Promise<number[]> {
  const answers: number[] = [];
  while (!signal.aborted) {
    const began = performance.now();
    const answered = await runtime.read(path).then(
      () => true,
      () => false,
    );
    const tookMs = performance.now() - began;
    if (answered) answers.push(tookMs);
    await sleep(Math.max(0, everyMs - tookMs), undefined, { signal }).catch(() => {});
  }
  return answers.sort((a, b) => a - b);
}

async function longestPauses(): Promise<string> {
  const text = await readFile(join(folder, "pauses"), "utf8").catch(() => "");
  await rm(join(folder, "pauses"), { force: true });
  const pauses = text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { ms: number; cpuMs: number; at: number });
  if (process.env.NAMESPACES_VERBOSE) for (const each of pauses) print(`    ${JSON.stringify(each)}`);
  const longest = pauses.sort((a, b) => b.ms - a.ms).slice(0, 3);
  return (
    longest
      .map(
        ({ ms, cpuMs, at }) => `${ms.toFixed(0)} ms (${cpuMs.toFixed(0)} ms of CPU) after ${(at / 1000).toFixed(1)} s`,
      )
      .join(", ") || "none over 50 ms"
  );
}

async function tell(to: ChildProcess, message: object): Promise<void> {
  const sent = once(to, "message");
  to.send(message);
  await sent;
}

async function handled(runtime: MeasuredRuntime): Promise<number> {
  return total(await runtime.read("/metrics"), "watchfire_handler_duration_seconds_count");
}
