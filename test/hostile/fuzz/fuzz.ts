import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../runtime/base/clock.ts";
import { type Delivery, run } from "../../../runtime/engine/delivery/delivery.ts";
import { launchChild } from "../../../runtime/sandbox/host/child-link.ts";
import type { Launch } from "../../../runtime/sandbox/host/link.ts";
import { Sandbox } from "../../../runtime/sandbox/host/sandbox.ts";
import type { Caller, HostReply } from "../../../runtime/sandbox/host-calls.ts";
import { residentBytes } from "../../../runtime/v8/resident-memory.ts";
import { bundleFunction } from "../../tools/bundle.ts";
import { watchLoopLag } from "../../tools/loop-lag.ts";
import { Connection } from "./connection.ts";

const program = join(import.meta.dirname, "executor.program.ts");

/** Trust groups, the number of functions in each, and the number of their concurrent events. */
const groups = ["", "red", "blue"];
const functionsEach = 2;
const eventsEach = 4;
/** Pause between two events of a lane, and after a function is loaded, in milliseconds. */
const restMs = 5;
const lifeMs = 3000;

/** Results of one fuzzing run. */
export interface FuzzReport {
  readonly executors: number;
  readonly frames: number;
  readonly megabytes: number;
  readonly calls: number;
  readonly events: Readonly<Record<string, number>>;
  readonly deaths: Readonly<Record<string, number>>;
  /** The longest time that work kept the parent from its event loop, in milliseconds of CPU time. */
  readonly longestPauseMs: number;
  /** The parent's peak resident memory, and that at the start, in MiB. */
  readonly memoryPeakMiB: number;
  readonly memoryBeforeMiB: number;
  /** Latency of an honest function's events in the same parent in milliseconds, and the number of failed ones. */
  readonly neighbourP99Ms: number;
  readonly neighbourFaults: number;
  /** Violations that got through. */
  readonly breaches: readonly string[];
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** Lets fuzzing executors serve functions for `ms` milliseconds, with an honest sandbox in the same process. */
export async function fuzz(ms: number, seed: number): Promise<FuzzReport> {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-fuzz-"));
  const handler = join(folder, "f.ts");
  writeFileSync(handler, "export default () => {};\n");
  const bundle = await bundleFunction({ name: "f", handler });
  const breaches: string[] = [];
  const connections: Connection[] = [];
  const deaths: Record<string, number> = {};
  const events: Record<string, number> = {};
  let calls = 0;
  let ids = 0;

  const launch: Launch = (listener) => {
    const connection = new Connection(connections.length, breaches);
    connections.push(connection);
    return connection.link(listener, launchChild({ args: [program, String(seed), String(connection.number)] }));
  };
  const answer = async (caller: Caller, _: string, args: string): Promise<HostReply> => {
    calls++;
    const { from } = JSON.parse(args) as { from: number };
    const wasSent = connections[from]?.wasSent(caller.function, caller.id) ?? false;
    if (!wasSent) breaches.push(`connection ${from} called in the name of ${caller.function}'s event ${caller.id}`);
    await pause(ids % 20);
    return { ok: true, json: JSON.stringify({ from, text: "x".repeat((ids % 50) * 1000) }) };
  };
  const output = { log: () => {}, metric: () => {} };
  const quiet = { info: () => {}, warn: () => {} };
  const observer = {
    executorDied(reason: string) {
      deaths[reason] = (deaths[reason] ?? 0) + 1;
    },
  };
  const common = { clock: systemClock, output, log: quiet };
  const fuzzed = new Sandbox({ ...common, executors: 2, hostCalls: { call: answer }, launch, observer });
  const honest = new Sandbox({ ...common, executors: 1, hostCalls: { call: async () => ({ ok: true, json: "{}" }) } });
  const resources = { memoryBytes: 32 * 2 ** 20, cpuPerEventMs: 500 };
  const delivery = (name: string): Delivery => ({
    function: name,
    trigger: "t",
    id: `${name}-${++ids}`,
    type: "Modified",
    object: { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "b", uid: "c" },
    resourceVersion: "1",
    attempt: 1,
    redelivered: false,
    flags: {},
    body: Buffer.from(`{"metadata":{"name":"b"}}`),
    timeoutMs: 2000,
  });

  await honest.load({ name: "neighbour", resources }, bundle, {});
  await run(honest, delivery("neighbour"));
  const memoryBefore = residentBytes(process.pid);
  let peak = memoryBefore;
  const lag = watchLoopLag();
  const until = performance.now() + ms;
  const goesOn = () => performance.now() < until;

  /** Sends one event after another, while `runs` returns true. */
  const lane = async (name: string, runs: () => boolean) => {
    while (runs()) {
      const next = delivery(name);
      const { type } = await run(fuzzed, next);
      events[type] = (events[type] ?? 0) + 1;
      if (type === "ok" && !connections.some((connection) => connection.hasEnded(next.id)))
        breaches.push(`${next.id} is acknowledged, and no connection that was sent it said so`);
      await pause(restMs);
    }
  };
  /**
   * Loads one function after another. A function that is suspended for its executors' deaths is replaced by the next.
   */
  const live = async (group: string, index: number) => {
    for (let version = 0; goesOn(); version++) {
      const name = `${group || "common"}-${index}-${version}`;
      const trustGroup = group === "" ? {} : { trustGroup: group };
      try {
        await fuzzed.load({ name, resources, ...trustGroup }, bundle, {});
      } catch {
        // Its executor may report that it cannot be loaded.
        await pause(restMs);
        continue;
      }
      const overAt = performance.now() + lifeMs;
      const runs = () => goesOn() && performance.now() < overAt && fuzzed.status(name)?.state !== "parked";
      await Promise.all(Array.from({ length: eventsEach }, () => lane(name, runs)));
      fuzzed.unload(name);
    }
  };
  const latencies: number[] = [];
  let neighbourFaults = 0;
  const neighbour = async () => {
    while (goesOn()) {
      const startedAt = performance.now();
      if ((await run(honest, delivery("neighbour"))).type !== "ok") neighbourFaults++;
      latencies.push(performance.now() - startedAt);
      peak = Math.max(peak, residentBytes(process.pid));
      await pause(10);
    }
  };
  const lives = groups.flatMap((group) => Array.from({ length: functionsEach }, (_, index) => live(group, index)));
  await Promise.all([neighbour(), ...lives]);
  const longestPauseMs = lag.stop();
  await Promise.all([fuzzed.close(0), honest.close(0)]);
  rmSync(folder, { recursive: true });
  latencies.sort((a, b) => a - b);
  return {
    executors: connections.length,
    frames: connections.reduce((sum, connection) => sum + connection.frames, 0),
    megabytes: mebibytes(connections.reduce((sum, connection) => sum + connection.bytes, 0)),
    calls,
    events,
    deaths,
    longestPauseMs,
    memoryPeakMiB: mebibytes(peak),
    memoryBeforeMiB: mebibytes(memoryBefore),
    neighbourP99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    neighbourFaults,
    breaches,
  };
}
