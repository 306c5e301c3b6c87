import type { Latency, Throughput } from "./measure.ts";

type Print = (line: string) => void;

const line = (name: string, cells: readonly string[]): string =>
  [name.padEnd(32), ...cells.map((text) => text.padStart(15))].join("");

/** Prints each row by its name, with its events/s and its CPU as multiples of the peer's. */
export function printThroughputs(
  rows: ReadonlyMap<string, Throughput>,
  peer: Throughput | undefined,
  print: Print,
): void {
  const titles = ["events/s", "x peer's", "us CPU/event", "x peer's", "in parent", "peak RSS", "processes"];
  if (rows.size > 0) print(line("", titles));
  for (const [name, row] of rows) {
    const cells = [
      row.eventsPerSecond.toFixed(0),
      peer ? (row.eventsPerSecond / peer.eventsPerSecond).toFixed(2) : "",
      row.cpuMicrosPerEvent.toFixed(1),
      peer ? (row.cpuMicrosPerEvent / peer.cpuMicrosPerEvent).toFixed(2) : "",
      row.ownCpuMicrosPerEvent.toFixed(1),
      `${(row.peakRssBytes / 1e6).toFixed(0)} MB`,
      String(row.processes),
    ];
    print(line(name, cells));
  }
}

/** Prints each row by its name, in milliseconds. */
export function printLatencies(rows: ReadonlyMap<string, Latency>, print: Print): void {
  print(line("", ["p50", "p99", "p99.9", "us CPU/event", "longest pause"]));
  for (const [name, { p50, p99, p999, cpuMicrosPerEvent, longestPauseMs }] of rows) {
    const pause = longestPauseMs === undefined ? "" : longestPauseMs.toFixed(0);
    print(line(name, [String(p50), String(p99), String(p999), cpuMicrosPerEvent.toFixed(0), pause]));
  }
}
