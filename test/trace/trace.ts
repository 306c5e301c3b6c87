// Finds the functions of the runtime that one change passes in the parent, by V8's precise coverage, minus those that run while
// nothing happens.

import type { Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startCluster } from "@watchfire/cluster";
import { Client } from "../target/client.ts";
import { Installation } from "../tools/installation.ts";
import { Team } from "../tools/team.ts";
import { until } from "../tools/until.ts";

/** The traced paths through the parent: an event of `mode: All`, and a run of a reconciler. */
export const traced = ["event", "reconcile"] as const;
export type Traced = (typeof traced)[number];

/** The functions and files that one change passed. */
export interface Trace {
  /** Number of calls by function, as `runtime/room/file.ts name@offset`. */
  readonly calls: ReadonlyMap<string, number>;
  /** The files of these functions, from the repository's root. */
  readonly files: ReadonlySet<string>;
}

/** Every timer of the idle runtime fires at least once in this time, in milliseconds. */
const idleMs = 7_000;
/** Such timers fire at least once in this time, in milliseconds. */
const awakeMs = 1_000;
/** Number of changes before the counted one, so that lazily loaded modules are loaded and one-time code has run. */
const warmUps = 8;
const patienceMs = 20_000;

const root = pathToFileURL(join(import.meta.dirname, "../..")).href;

/**
 * True for `runtime/` and `sdk/` except the embedded cluster, which acts as the API server here, and the history, which a timer writes once
 * for up to 8,192 events. The collection of an event for it is counted.
 */
const isOurs = (path: string): boolean =>
  /^(runtime|sdk)\//.test(path) && !/^runtime\/(cluster|history)\//.test(path) && !path.includes("node_modules");

class Coverage {
  private readonly session = new Session();

  async start(): Promise<void> {
    this.session.connect();
    await this.session.post("Profiler.enable");
    await this.session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  /** The calls since the last call of this method. */
  async take(): Promise<Map<string, number>> {
    const { result } = await this.session.post("Profiler.takePreciseCoverage");
    return new Map(result.flatMap((script) => callsOf(script)));
  }

  stop(): void {
    this.session.disconnect();
  }
}

function callsOf({ url, functions }: Profiler.ScriptCoverage): [string, number][] {
  const path = url.startsWith(`${root}/`) ? url.slice(root.length + 1) : "";
  if (!isOurs(path)) return [];
  return functions.flatMap(({ functionName, ranges: [range] }) =>
    range && range.count > 0 ? [[`${path} ${functionName || "-"}@${range.startOffset}`, range.count]] : [],
  );
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Runs a whole runtime on an embedded cluster in this process, and traces one change of one ConfigMap up to its handler.
 */
export async function trace(kind: Traced): Promise<Trace> {
  const cluster = await startCluster();
  const admin = new Client({ url: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
  const team = await Team.create(admin);
  const connection = { server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };
  // With a history, as `watchfire start` has.
  const history = { bytes: 64 * 2 ** 20, ageMs: 7 * 86_400_000 };
  const runtime = await Installation.on(connection, undefined, { history });
  const mode = kind === "reconcile" ? "Reconcile" : "All";
  let handled = 0;
  await runtime.define("traced", { watch: team.watch(), spec: { delivery: { mode } } });
  await runtime.start();
  const coverage = new Coverage();
  const change = async (value: number) => {
    await (value === 1 ? team.make("one") : team.set("one", value));
    await until(`the handler runs for change ${value}`, patienceMs, async () => {
      const ended = runtime.lines.filter(({ msg }) => msg === "told").length;
      return ended > handled;
    });
    handled++;
    // Waits until the end of its attempt is written and acknowledged.
    await pause(500);
  };
  try {
    for (let value = 1; value <= warmUps; value++) await change(value);
    await pause(idleMs);
    await coverage.start();
    await coverage.take();
    const idle = new Set<string>();
    for (let window = 0; window < 2; window++) {
      await pause(idleMs);
      for (const name of (await coverage.take()).keys()) idle.add(name);
    }
    // Nor the timers of an executor that has just run code: its memory is read more often than that of an idle one.
    await change(warmUps + 1);
    await coverage.take();
    await pause(awakeMs);
    for (const name of (await coverage.take()).keys()) idle.add(name);
    await change(warmUps + 2);
    const calls = new Map([...(await coverage.take())].filter(([name]) => !idle.has(name)));
    return { calls, files: new Set([...calls.keys()].map((name) => name.slice(0, name.indexOf(" ")))) };
  } finally {
    coverage.stop();
    await runtime[Symbol.asyncDispose]();
    await admin.close();
    await cluster.close();
  }
}
