// npm run bench: a stream of Pod events through ours and through clients that run their handler unsandboxed in the process
// that watches. First what a manifest's defaults give, then what a user may tune. BENCH_EVENTS and BENCH_ROUNDS make it shorter
// or longer; words after the command choose among its rows by their names. BENCH_PROFILE names a folder for CPU profiles of ours.
import { fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { type Contestant, clientNode, fluentClient, watchfire } from "./contestants.ts";
import { type Delays, percentile } from "./delays.ts";
import { usageOf } from "./process-tree.ts";
import type { FromServer, ToServer } from "./stream-server.ts";

interface Result {
  readonly eventsPerSecond: number;
  readonly cpuMicrosPerEvent: number;
  /** The part of the process that was started, without its children. */
  readonly ownCpuMicrosPerEvent: number;
  readonly peakRssBytes: number;
  readonly processes: number;
}

const events = Number(process.env.BENCH_EVENTS ?? 50_000);
const rounds = Number(process.env.BENCH_ROUNDS ?? 1);
const pace = { perSecond: 1000, seconds: 5 };
const chosen = process.argv.slice(2);
/** After the last event, so that what is written late, such as checkpoints, is counted. */
const settleMs = 1000;

const print = (line: string) => process.stdout.write(`${line}\n`);
const cell = (text: string) => text.padStart(12);
const isChosen = ({ name }: Contestant) => chosen.length === 0 || chosen.some((word) => name.includes(word));
const work = await mkdtemp(join(tmpdir(), "watchfire-bench-"));
const kubeconfig = join(work, "kubeconfig");
const server = fork(join(import.meta.dirname, "stream-server.ts"), [String(events), kubeconfig]);

try {
  const { bytes, rare } = await heard("listening");
  const size = (bytes / events / 1000).toFixed(1);
  print(`Pod events of ${size} KB over TLS on loopback, ${cpus().length} cores; ours is sandboxed and checkpointed`);
  const peer = clientNode();
  const streams = [
    { contestant: watchfire("default manifest", "functions-all"), expected: events },
    { contestant: watchfire("object: Metadata", "functions-metadata"), expected: events },
    { contestant: watchfire("filtered by changedFields", "functions-fields"), expected: events },
    { contestant: watchfire("filtered by labels", "functions-labels"), expected: rare },
    { contestant: watchfire("tuned: concurrency 256", "functions-tuned"), expected: events },
    { contestant: peer, expected: events },
    { contestant: fluentClient, expected: events },
  ].filter(({ contestant }) => isChosen(contestant));
  const results = new Map<Contestant, Result[]>(streams.map(({ contestant }) => [contestant, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const { contestant, expected } of streams)
      results.get(contestant)?.push(await throughput(contestant, expected));
  }
  const rows = streams.map(({ contestant }) => ({ name: contestant.name, ...medians(results.get(contestant) ?? []) }));
  report(
    rows,
    rows.find(({ name }) => name === peer.name),
  );
  const paced = [watchfire("default manifest", "functions-paced"), clientNode("paced")].filter(isChosen);
  if (paced.length > 0) print(`\n${pace.perSecond} events a second, to the handler's start, in whole milliseconds`);
  if (paced.length > 0) print(["".padEnd(32), ...["p50", "p99", "p99.9", "us CPU/event"].map(cell)].join(""));
  for (const contestant of paced) await latency(contestant);
} finally {
  server.disconnect();
  await rm(work, { recursive: true, force: true });
}

/** One contestant, once, from an idle watch to the last of the `expected` events handled. */
function throughput(contestant: Contestant, expected: number): Promise<Result> {
  return started(contestant, expected, async (running) => {
    const before = usageOf(running.pid);
    const began = performance.now();
    tell({ type: "go" });
    await running.handled;
    const seconds = (performance.now() - began) / 1000;
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const after = usageOf(running.pid);
    return {
      eventsPerSecond: events / seconds,
      cpuMicrosPerEvent: ((after.cpuMs - before.cpuMs) * 1000) / events,
      ownCpuMicrosPerEvent: ((after.ownCpuMs - before.ownCpuMs) * 1000) / events,
      peakRssBytes: after.peakRssBytes,
      processes: after.processes,
    };
  });
}

/** One contestant at a steady pace. */
async function latency(contestant: Contestant): Promise<void> {
  const count = pace.perSecond * pace.seconds;
  const [delays, cpuMs] = await started(contestant, count, async (running): Promise<[Delays, number]> => {
    const before = usageOf(running.pid);
    tell({ type: "go", paced: pace });
    const told = await Promise.race([running.delays, running.handled.then(() => running.delays)]);
    return [told, usageOf(running.pid).cpuMs - before.cpuMs];
  });
  const figures = [0.5, 0.99, 0.999].map((share) => String(percentile(delays, share)));
  print([contestant.name.padEnd(32), ...[...figures, ((cpuMs * 1000) / count).toFixed(0)].map(cell)].join(""));
}

/** Lets a contestant watch, does the work, and ends it. */
async function started<T>(
  contestant: Contestant,
  expected: number,
  measure: (running: Awaited<ReturnType<Contestant["start"]>>) => Promise<T>,
): Promise<T> {
  tell({ type: "reset" });
  const folder = await mkdtemp(join(work, "data-"));
  const watching = heard("watching");
  const running = await contestant.start(kubeconfig, expected, folder);
  try {
    await Promise.race([watching, running.handled]);
    return await measure(running);
  } finally {
    await running.stop();
  }
}

function medians(results: readonly Result[]): Result {
  const median = (key: keyof Result) => {
    const sorted = results.map((result) => result[key]).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  return {
    eventsPerSecond: median("eventsPerSecond"),
    cpuMicrosPerEvent: median("cpuMicrosPerEvent"),
    ownCpuMicrosPerEvent: median("ownCpuMicrosPerEvent"),
    peakRssBytes: median("peakRssBytes"),
    processes: median("processes"),
  };
}

/** Each row, with its events/s and its CPU as multiples of the peer's. */
function report(rows: readonly ({ readonly name: string } & Result)[], peer: Result | undefined): void {
  const titles = ["events/s", "x peer's", "us CPU/event", "x peer's", "in parent", "peak RSS", "processes"];
  if (rows.length > 0) print(`\n${events} events at once, no-op handler`);
  if (rows.length > 0) print(["".padEnd(32), ...titles.map(cell)].join(""));
  for (const row of rows) {
    const figures = [
      row.eventsPerSecond.toFixed(0),
      peer ? (row.eventsPerSecond / peer.eventsPerSecond).toFixed(2) : "",
      row.cpuMicrosPerEvent.toFixed(1),
      peer ? (row.cpuMicrosPerEvent / peer.cpuMicrosPerEvent).toFixed(2) : "",
      row.ownCpuMicrosPerEvent.toFixed(1),
      `${(row.peakRssBytes / 1e6).toFixed(0)} MB`,
      String(row.processes),
    ];
    print([row.name.padEnd(32), ...figures.map(cell)].join(""));
  }
}

function tell(message: ToServer): void {
  server.send(message);
}

/** The server's next message of a type; rejects when the server ends. */
function heard<T extends FromServer["type"]>(type: T): Promise<Extract<FromServer, { type: T }>> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error("the stream server ended"));
    server.once("exit", onExit);
    server.on("message", function onMessage(message: FromServer) {
      if (message.type !== type) return;
      server.off("message", onMessage).off("exit", onExit);
      resolve(message as Extract<FromServer, { type: T }>);
    });
  });
}
