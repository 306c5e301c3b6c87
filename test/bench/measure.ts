import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { type Contestant, pausesFile } from "./contestants.ts";
import { percentile } from "./delays.ts";
import { usageOf } from "./process-tree.ts";
import type { FromServer, Pace, ToServer } from "./stream-server.ts";

/** A contestant's figures for a stream of events that all arrived at once. CPU time is that of all its processes. */
export interface Throughput {
  readonly eventsPerSecond: number;
  readonly cpuMicrosPerEvent: number;
  /** The share of the started process, without its children. */
  readonly ownCpuMicrosPerEvent: number;
  readonly peakRssBytes: number;
  readonly processes: number;
}

/** A contestant's latency at a steady pace, up to the handler's start, in whole milliseconds. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly cpuMicrosPerEvent: number;
  /** The longest pause of its event loop, in milliseconds; `undefined` if it does not record pauses. */
  readonly longestPauseMs: number | undefined;
}

/** Wait after the last event, so that late writes, such as checkpoints, are counted. Milliseconds. */
const settleMs = 1000;

/** The server of the bench's events, and the contestants that read them. */
export class Measure {
  /** Size of one event in bytes, and the number of events that match the label filter's selector. */
  readonly listening: Promise<{ readonly bytes: number; readonly rare: number }>;
  private readonly server: ChildProcess;
  private readonly work: string;
  private readonly kubeconfig: string;
  private readonly events: number;

  /** @param work an empty folder */
  constructor(events: number, work: string) {
    this.events = events;
    this.work = work;
    this.kubeconfig = join(work, "kubeconfig");
    this.server = fork(join(import.meta.dirname, "stream-server.ts"), [String(events), this.kubeconfig], {
      execArgv: ["--expose-gc"],
    });
    this.listening = this.heard("listening");
  }

  close(): void {
    this.server.disconnect();
  }

  /**
   * Measures one contestant once, from an idle watch to the last handled event.
   * @param handled number of events that its handlers and filters see in all
   * @param count reads only the first so many events of the stream
   */
  throughput(contestant: Contestant, handled: number, count = this.events): Promise<Throughput> {
    return this.started(contestant, handled, async (running) => {
      const before = usageOf(running.pid);
      const began = performance.now();
      this.tell({ type: "go", ...(count < this.events && { count }) });
      await running.handled;
      const seconds = (performance.now() - began) / 1000;
      await new Promise((resolve) => setTimeout(resolve, settleMs));
      const after = usageOf(running.pid);
      return {
        eventsPerSecond: count / seconds,
        cpuMicrosPerEvent: ((after.cpuMs - before.cpuMs) * 1000) / count,
        ownCpuMicrosPerEvent: ((after.ownCpuMs - before.ownCpuMs) * 1000) / count,
        peakRssBytes: after.peakRssBytes,
        processes: after.processes,
      };
    });
  }

  /** Measures one contestant at a steady pace. */
  latency(contestant: Contestant, pace: Pace): Promise<Latency> {
    const count = pace.perSecond * pace.seconds;
    return this.started(contestant, count, async (running, folder) => {
      const pauses = join(folder, pausesFile);
      const before = usageOf(running.pid);
      const from = existsSync(pauses) ? statSync(pauses).size : 0;
      this.tell({ type: "go", paced: pace });
      const delays = await Promise.race([running.delays, running.handled.then(() => running.delays)]);
      const { cpuMs } = usageOf(running.pid);
      return {
        p50: percentile(delays, 0.5),
        p99: percentile(delays, 0.99),
        p999: percentile(delays, 0.999),
        cpuMicrosPerEvent: ((cpuMs - before.cpuMs) * 1000) / count,
        longestPauseMs: existsSync(pauses) ? longest(readFileSync(pauses).toString("utf8", from)) : undefined,
      };
    });
  }

  /** Starts a contestant's watch, does the work, and stops the contestant. */
  private async started<T>(
    contestant: Contestant,
    expected: number,
    measure: (running: Awaited<ReturnType<Contestant["start"]>>, folder: string) => Promise<T>,
  ): Promise<T> {
    this.tell({ type: "reset" });
    const folder = await mkdtemp(join(this.work, "data-"));
    const watching = this.heard("watching");
    const running = await contestant.start(this.kubeconfig, expected, folder);
    try {
      await Promise.race([Promise.all([watching, running.ready]), running.handled]);
      return await Promise.race([measure(running, folder), late(contestant.name)]);
    } finally {
      await running.stop();
    }
  }

  private tell(message: ToServer): void {
    this.server.send(message);
  }

  /** The server's next message of a type; rejects when the server ends. */
  private heard<T extends FromServer["type"]>(type: T): Promise<Extract<FromServer, { type: T }>> {
    const { server } = this;
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
}

/** Limit of a contestant's time, in milliseconds. Beyond it, an event was lost or counted differently. */
const longestMs = 180_000;

/** Rejects after `longestMs`. */
function late(name: string): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(
      () => reject(new Error(`${name} did not handle all events in ${longestMs / 1000} s`)),
      longestMs,
    ).unref();
  });
}

/** The longest of the pauses that `loop-pauses.ts` wrote, in milliseconds. */
function longest(lines: string): number {
  const pauses = lines.split("\n").filter((line) => line !== "");
  return Math.max(0, ...pauses.map((line) => Number(JSON.parse(line).ms)));
}
