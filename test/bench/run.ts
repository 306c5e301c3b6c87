// npm run bench: sends a stream of Pod events to Watchfire, and to clients whose handler runs unsandboxed in the watching
// process: client-node, kubernetes-fluent-client, client-go (requires Go) and kopf (requires Python). First with a manifest's
// defaults, then with tuned settings. BENCH_EVENTS and BENCH_ROUNDS change the length; arguments select rows by their names.
// BENCH_PROFILE names a folder for CPU profiles of Watchfire, BENCH_JSON a file for the figures, BENCH_PLOT one for the chart.
// `npm run bench:standing` measures starts and memory.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { type Contestant, clientGo, clientNode, fluentClient, kopf, pacedFunctions, watchfire } from "./contestants.ts";
import { writeHundred } from "./hundred.ts";
import { type Latency, Measure, type Throughput } from "./measure.ts";
import { plot } from "./plot.ts";
import { shards } from "./pod-stream.ts";
import type { Pace } from "./stream-server.ts";
import { printLatencies, printThroughputs } from "./table.ts";

const events = Number(process.env.BENCH_EVENTS ?? 100_000);
const rounds = Number(process.env.BENCH_ROUNDS ?? 1);
const { BENCH_JSON: figures, BENCH_PLOT: picture } = process.env;
const paces: readonly Pace[] = [
  { perSecond: 100, seconds: 10 },
  { perSecond: 1000, seconds: 20 },
  { perSecond: 5000, seconds: 5 },
];
/** The part of the stream that slow contestants read. */
const part = Math.ceil(events / 10);
const chosen = process.argv.slice(2);

interface Row {
  readonly contestant: Contestant;
  /** Number of events that are handled or filtered. Default: all. */
  readonly handled?: number;
  /** Uses only the first so many events of the stream. */
  readonly count?: number;
}

const print = (line: string) => process.stdout.write(`${line}\n`);
const isChosen = ({ name }: Contestant) => chosen.length === 0 || chosen.some((word) => name.includes(word));
const work = await mkdtemp(join(tmpdir(), "watchfire-bench-"));
const measure = new Measure(events, work);

try {
  const { bytes, rare } = await measure.listening;
  const size = (bytes / events / 1000).toFixed(1);
  const machine = `${cpus().length} cores, ${cpus()[0]?.model.trim()}, Node ${process.version}`;
  print(`Pod events of ${size} KB over TLS on loopback; ${machine}; ours is sandboxed and checkpointed`);
  const peer = clientNode();
  const rows: readonly Row[] = [
    { contestant: watchfire("default manifest", "functions-default") },
    { contestant: watchfire("event.object untouched", "functions-untouched") },
    { contestant: watchfire("object: Metadata", "functions-metadata") },
    { contestant: watchfire("filtered by changedFields", "functions-fields") },
    { contestant: watchfire("filtered, without accounts", "functions-fields", "without-account.ts") },
    { contestant: watchfire("filtered by labels", "functions-labels"), handled: rare },
    { contestant: watchfire("no history", "functions-default", "without-history.ts") },
    { contestant: watchfire("no checkpoints", "functions-default", "without-store.ts") },
    { contestant: watchfire("one of 100 functions", writeHundred), handled: events * shards },
    { contestant: watchfire("tuned: concurrency 256", "functions-tuned") },
    { contestant: peer },
    { contestant: fluentClient },
    ...others("").map((contestant) => ({ contestant, handled: part, count: part })),
  ];
  const streams = rows.filter(({ contestant }) => isChosen(contestant));
  const results = new Map<string, Throughput[]>(streams.map(({ contestant }) => [contestant.name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const { contestant, handled = events, count } of streams)
      results.get(contestant.name)?.push(await measure.throughput(contestant, handled, count));
  }
  const throughputs = new Map([...results].map(([name, all]) => [name, medians(all)]));
  if (throughputs.size > 0) print(`\n${events} events at once`);
  printThroughputs(throughputs, throughputs.get(peer.name), print);
  const ours = watchfire("default manifest", pacedFunctions, "loop-pauses.ts");
  const bare = watchfire("no history", pacedFunctions, "loop-pauses.ts", "without-history.ts");
  const paced = [ours, bare, clientNode("paced"), ...others("paced")].filter(isChosen);
  const latencies = new Map<number, Map<string, Latency>>();
  for (const pace of paced.length > 0 ? paces : []) {
    const ofPace = new Map<string, Latency>();
    for (const contestant of paced) ofPace.set(contestant.name, await measure.latency(contestant, pace));
    latencies.set(pace.perSecond, ofPace);
    print(`\n${pace.perSecond} events a second, to the handler's start, in whole milliseconds`);
    printLatencies(ofPace, print);
  }
  const date = new Date().toISOString().slice(0, 10);
  const told = { date, machine, events, rounds };
  if (figures) {
    const pacedFigures = Object.fromEntries([...latencies].map(([pace, each]) => [pace, Object.fromEntries(each)]));
    const document = { ...told, throughput: Object.fromEntries(throughputs), paced: pacedFigures };
    await writeFile(figures, `${JSON.stringify(document, undefined, 2)}\n`);
  }
  if (picture) await writeFile(picture, plot(throughputs, told));
} finally {
  measure.close();
  await rm(work, { recursive: true, force: true });
}

/** Clients in other languages whose tools are installed. They are slow, and receive a part of the stream. */
function others(mode: string): readonly Contestant[] {
  return [clientGo(work, mode), kopf(work, mode)].filter((each) => each !== undefined);
}

function medians(results: readonly Throughput[]): Throughput {
  const median = (key: keyof Throughput) => {
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
