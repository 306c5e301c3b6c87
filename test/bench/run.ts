// npm run bench: events per second, CPU per event and memory for a stream of Pod events, ours beside two clients that
// run their handler unsandboxed in the process that watches. BENCH_EVENTS and BENCH_ROUNDS make it shorter or longer.
import { fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { type Contestant, clientNode, fluentClient, watchfire } from "./contestants.ts";
import { usageOf } from "./process-tree.ts";
import type { FromServer, ToServer } from "./stream-server.ts";

interface Result {
  readonly eventsPerSecond: number;
  readonly cpuMicrosPerEvent: number;
  /** The part of the process that was started, without its children. */
  readonly ownCpuMicrosPerEvent: number;
  readonly peakRssBytes: number;
  readonly processes: number;
  readonly sent: number;
}

const events = Number(process.env.BENCH_EVENTS ?? 100_000);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
/** After the last event, so that what is written late, such as checkpoints, is counted. */
const settleMs = 1000;

const print = (line: string) => process.stdout.write(`${line}\n`);
const work = await mkdtemp(join(tmpdir(), "watchfire-bench-"));
const kubeconfig = join(work, "kubeconfig");
const server = fork(join(import.meta.dirname, "stream-server.ts"), [String(events), kubeconfig]);

try {
  const { bytes, rare } = await heard("listening");
  const size = (bytes / events / 1000).toFixed(1);
  print(
    `${events} Pod events of ${size} KB over TLS on loopback, no-op handler, ${rounds} rounds, ${cpus().length} cores`,
  );

  const contestants = [watchfire("watchfire, sandboxed and checkpointed", "functions-all"), clientNode, fluentClient];
  const results = new Map<Contestant, Result[]>(contestants.map((contestant) => [contestant, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const contestant of contestants) results.get(contestant)?.push(await measure(contestant, events));
  }
  report(contestants.map((contestant) => ({ contestant, ...medians(results.get(contestant) ?? []) })));
  reportFilter(await measure(watchfire("watchfire, labelled", "functions-labelled"), rare));
} finally {
  server.disconnect();
  await rm(work, { recursive: true, force: true });
}

/** One contestant, once, from an idle watch to the last of the `expected` events handled. */
async function measure(contestant: Contestant, expected: number): Promise<Result> {
  tell({ type: "reset" });
  const folder = await mkdtemp(join(work, "data-"));
  const watching = heard("watching");
  const running = await contestant.start(kubeconfig, expected, folder);
  try {
    await Promise.race([watching, running.handled]);
    const before = usageOf(running.pid);
    const began = performance.now();
    const sent = heard("sent");
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
      sent: (await sent).events,
    };
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
    sent: median("sent"),
  };
}

function report(rows: readonly ({ contestant: Contestant } & Result)[]): void {
  const ours = rows[0];
  if (!ours) return;
  const width = Math.max(...rows.map((row) => row.contestant.name.length));
  const cell = (text: string) => text.padStart(12);
  print("");
  print([" ".repeat(width), ...["events/s", "us CPU/event", "peak RSS", "processes"].map(cell)].join("  "));
  for (const row of rows) {
    const figures = [
      row.eventsPerSecond.toFixed(0),
      row.cpuMicrosPerEvent.toFixed(1),
      `${(row.peakRssBytes / 1e6).toFixed(0)} MB`,
      String(row.processes),
    ];
    print([row.contestant.name.padEnd(width), ...figures.map(cell)].join("  "));
  }
  const executors = ours.cpuMicrosPerEvent - ours.ownCpuMicrosPerEvent;
  print("");
  print(
    `of ours: ${ours.ownCpuMicrosPerEvent.toFixed(1)} us in the parent, ${executors.toFixed(1)} us in the executors`,
  );
  for (const row of rows.slice(1)) {
    const speed = (ours.eventsPerSecond / row.eventsPerSecond).toFixed(2);
    const cpu = (ours.cpuMicrosPerEvent / row.cpuMicrosPerEvent).toFixed(2);
    print(`ours to ${row.contestant.name}: ${speed} x its events/s, ${cpu} x its CPU per event`);
  }
}

function reportFilter({ sent, cpuMicrosPerEvent }: Result): void {
  const dropped = ((1 - sent / events) * 100).toFixed(1);
  print(
    `label filter: ${dropped} % of the events dropped before any parse, by the API server, which never sends them;`,
  );
  print(`  ${cpuMicrosPerEvent.toFixed(1)} us of our CPU per event of the stream`);
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
