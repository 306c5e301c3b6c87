import { type ChildProcess, execFile, fork, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { goProgram, pythonPrograms } from "../tools/toolchains.ts";
import type { Delays } from "./delays.ts";
import { usersFlags, usersVariables } from "./measured-runtime.ts";

/** One reader of the stream, running in a separate process. */
export interface Running {
  readonly pid: number;
  /** Resolves when all of its functions watch. */
  readonly ready: Promise<void>;
  /** Resolves when every event has been through the handler. */
  readonly handled: Promise<void>;
  /** The delays of the handlers' starts, if they record them. Resolves after the last event. */
  readonly delays: Promise<Delays>;
  stop(): Promise<void>;
}

export interface Contestant {
  readonly name: string;
  /** `events`: the number of events in the run; `folder`: an empty folder for its state. */
  start(kubeconfig: string, events: number, folder: string): Promise<Running>;
}

const here = import.meta.dirname;
const cache = join(here, "../../node_modules/.cache/watchfire-bench");

/** Folder of the function that records its starts and logs them at the last event. */
export const pacedFunctions = "functions-paced";

/** A script that is imported into Watchfire's process before it starts. */
export type Beside = "without-store.ts" | "without-account.ts" | "without-history.ts" | "loop-pauses.ts";

/**
 * Watchfire as users run it: the command, its executor processes, its checkpoints on disk.
 * @param functions a folder here, or a function that writes one into the given folder
 */
export function watchfire(
  name: string,
  functions: string | ((folder: string) => Promise<void>),
  ...beside: readonly Beside[]
): Contestant {
  return {
    name,
    async start(kubeconfig, events, folder) {
      const bin = join(here, "../../runtime/bin/watchfire.js");
      const port = await freePort();
      const written = typeof functions === "string" ? join(here, functions) : join(folder, "functions");
      if (typeof functions !== "string") await functions(written);
      const args = ["start", "--functions", written, "--data", join(folder, "data"), "--kubeconfig", kubeconfig];
      const { BENCH_PROFILE: into } = process.env;
      const flags = into ? ["--cpu-prof", `--cpu-prof-dir=${into}`] : [];
      for (const script of beside) flags.push(`--import=${join(here, script)}`);
      const child = spawn(process.execPath, [...usersFlags, ...flags, bin, ...args, "--listen", `127.0.0.1:${port}`], {
        stdio: ["ignore", "pipe", "inherit"],
        env: {
          ...process.env,
          ...usersVariables,
          WATCHFIRE_LOG_LEVEL: "warn",
          LOOP_PAUSES: join(folder, pausesFile),
          LOOP_PAUSES_FROM: "1",
        },
      });
      const address = `http://127.0.0.1:${port}`;
      const told = loggedDelays(child);
      // A handler that reports its end needs no polling. According to a profile, the metrics page took 11 us per event at 1,000 a
      // second.
      const handled =
        functions === pacedFunctions ? told.then(() => {}) : pollHandled(`${address}/metrics`, events, child);
      return running(child, handled, told, pollReady(`${address}/readyz`, child));
    },
  };
}

/** Name of the file in a contestant's folder to which it writes its event loop's pauses. */
export const pausesFile = "pauses";

/** `mode`: "paced" if its handler records its start. */
export const clientNode = (mode = ""): Contestant => ({
  name: "client-node 2.0.1 Watch",
  start: async (kubeconfig, events) => forked("client-node-watch.ts", kubeconfig, [String(events), mode]),
});

const fluentClientVersion = "3.11.6"; // version 3.11.11 depends on a quicktype-core that the registry does not have

/** client-go's typed informer; undefined without Go. */
export function clientGo(work: string, mode = ""): Contestant | undefined {
  const program = goProgram(join(here, "client-go"), join(work, "client-go"));
  if (program === undefined) return undefined;
  const name = "client-go 0.34 informer";
  return {
    name,
    start: async (kubeconfig, events) => spoken(program, [String(events), mode], { KUBECONFIG: kubeconfig }),
  };
}

/** kopf; undefined without Python. */
export function kopf(work: string, mode = ""): Contestant | undefined {
  const programs = pythonPrograms(join(here, "../compare/kopf/requirements.txt"), join(work, "python"));
  if (programs === undefined) return undefined;
  const args = ["run", "--quiet", "--standalone", "--all-namespaces", join(here, "kopf-watch.py")];
  return {
    name: "kopf 1.45",
    start: async (kubeconfig, events) =>
      spoken(join(programs, "kopf"), args, { KUBECONFIG: kubeconfig, BENCH_EVENTS: String(events), BENCH_MODE: mode }),
  };
}

export const fluentClient: Contestant = {
  name: `kubernetes-fluent-client ${fluentClientVersion}`,
  async start(kubeconfig, events) {
    return forked("fluent-client-watch.ts", kubeconfig, [String(events), await fluentClientEntry()]);
  },
};

/** The module to import; npm installs it into the cache on first use. */
async function fluentClientEntry(): Promise<string> {
  const root = join(cache, "node_modules/kubernetes-fluent-client");
  const manifest = join(root, "package.json");
  const installed = existsSync(manifest) ? JSON.parse(await readFile(manifest, "utf8")).version : undefined;
  if (installed !== fluentClientVersion) {
    await mkdir(cache, { recursive: true });
    await writeFile(join(cache, "package.json"), '{ "private": true }\n');
    const spec = `kubernetes-fluent-client@${fluentClientVersion}`;
    const flags = ["--save-exact", "--ignore-scripts", "--no-audit", "--no-fund"];
    await promisify(execFile)("npm", ["install", ...flags, spec], { cwd: cache });
  }
  return join(root, "dist/index.js");
}

function forked(script: string, kubeconfig: string, args: readonly string[]): Running {
  const child = fork(join(here, script), args, { env: { ...process.env, KUBECONFIG: kubeconfig } });
  const told = new Promise<Delays>((resolve) => {
    child.once("message", ({ delays = {} }: { delays?: Delays }) => resolve(delays));
  });
  return running(
    child,
    told.then(() => {}),
    told,
  );
}

/** A program that prints the delays of its notifications once it has received all events. */
function spoken(program: string, args: readonly string[], env: Readonly<Record<string, string>>): Running {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  const told = loggedDelays(child);
  return running(
    child,
    told.then(() => {}),
    told,
  );
}

/** Reads the delays that the paced function logs at its last event. */
function loggedDelays(child: ChildProcess): Promise<Delays> {
  return new Promise((resolve) => {
    if (!child.stdout) return;
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = /"delays":(\{[^{}]*\})/.exec(line);
      if (found?.[1]) resolve(JSON.parse(found[1]));
    });
  });
}

function running(
  child: ChildProcess,
  handled: Promise<void>,
  delays: Promise<Delays>,
  ready: Promise<void> = Promise.resolve(),
): Running {
  const exit = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const early = exit.then(() => {
    throw new Error(`process ended with status ${child.exitCode ?? child.signalCode} before the events were handled`);
  });
  early.catch(() => undefined); // rejects only while somebody awaits `handled`
  return {
    pid: child.pid ?? 0,
    ready,
    handled: Promise.race([handled, early]),
    delays,
    async stop() {
      child.kill(process.env.BENCH_PROFILE ? "SIGTERM" : "SIGKILL"); // a profile is written only at a clean end
      await exit;
    },
  };
}

/**
 * Interval in which the runtime's own count is polled, in milliseconds. Polling is part of the measured figure: every 50 ms it
 * cost 2 us per event. So it is frequent only near the last event; otherwise the end would be noticed up to 100 ms late, 3 % of a
 * run.
 */
const pollMs = { most: 200, least: 10 };

async function pollReady(readyz: string, child: ChildProcess): Promise<void> {
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  while (!ended() && !(await fetch(readyz).catch(() => undefined))?.ok) {
    await new Promise((resolve) => setTimeout(resolve, pollMs.most));
  }
}

async function pollHandled(metrics: string, events: number, child: ChildProcess): Promise<void> {
  let last = { at: performance.now(), handled: 0 };
  while (child.exitCode === null && child.signalCode === null) {
    const text = await fetch(metrics).then(
      (response) => response.text(),
      () => "", // not listening yet
    );
    let handled = 0;
    for (const [, value] of text.matchAll(/^watchfire_events_total\{[^}]*outcome="(?:ok|filtered)"[^}]*\} (\d+)/gm)) {
      handled += Number(value);
    }
    if (handled >= events) return;
    const now = { at: performance.now(), handled };
    const leftMs = ((events - handled) * (now.at - last.at)) / Math.max(1, handled - last.handled);
    last = now;
    await new Promise((resolve) => setTimeout(resolve, Math.max(pollMs.least, Math.min(pollMs.most, leftMs))));
  }
}

async function freePort(): Promise<number> {
  const { createServer } = await import("node:net");
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
