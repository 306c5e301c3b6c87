// Stands in for a guest that has left its isolate in native code: a process of the executors' user, in their container. Performs
// the deeds that its arguments name, in order, and prints a JSON line for each: its gain, or the reason why it failed.
import { existsSync, readdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { supervisorFrame } from "../../../runtime/sandbox/supervisor/frames.ts";
import { encodeFrame } from "../../../runtime/sandbox/wire.ts";

const [socket = "", ...deeds] = process.argv.slice(2);
const key = `${socket}.key`;

const others = (): string[] =>
  readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid) && isExecutors(name));
/**
 * True for the supervisor and executors. A checkout also has esbuild, which the image does not, and its folder may have any name.
 */
const isExecutors = (pid: string): boolean => {
  const command = readFileSync(`/proc/${pid}/cmdline`, "latin1");
  return /watchfire|executor/.test(command) && !/\/esbuild\0/.test(command);
};

/** Results of an attempt on each other process of the container. */
const onEach = (attempt: (pid: string) => unknown): unknown => others().map((pid) => gain(() => attempt(pid)));

function gain(attempt: () => unknown): unknown {
  try {
    return attempt();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

const connects = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const tried = connect(port, "127.0.0.1", () => resolve(true));
    tried.on("error", () => resolve(false));
  });

function greet(): Promise<void> {
  const rights = {
    user: "same",
    pidNamespace: "own",
    memory: "sealed",
    newPrivileges: "none",
    endsWithStarter: "kernel",
  };
  const header = { key: "0".repeat(64), rights: { ...rights, nice: 5, oomScoreAdj: null, permissionModel: true } };
  const bytes = Buffer.concat(encodeFrame(supervisorFrame.greet, header));
  return new Promise((written) => connect(socket).write(bytes, () => written()));
}

const all: Readonly<Record<string, () => unknown>> = {
  kill: () => process.kill(1, "SIGKILL"),
  stop: () => process.kill(1, "SIGSTOP"),
  environ: () => onEach((pid) => readFileSync(`/proc/${pid}/environ`, "latin1")),
  memory: () => onEach((pid) => readFileSync(`/proc/${pid}/mem`)),
  descriptors: () => onEach((pid) => readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))),
  inspector: async () => {
    for (const pid of others()) process.kill(Number(pid), "SIGUSR1");
    await pause(500);
    return connects(9229);
  },
  key: () => gain(() => readFileSync(key, "utf8")),
  replace: () => gain(() => renameSync(socket, `${socket}.real`)),
  plant: () => gain(() => writeFileSync(key, "0".repeat(64))),
  greet: () => greet(),
  count: () => others().length,
  // As fast as possible, for the rest of its life.
  lurk: () => {
    while (!existsSync(key));
    return readFileSync(key, "utf8");
  },
};

for (const deed of deeds) {
  const gained = await all[deed]?.();
  process.stdout.write(`${JSON.stringify({ deed, gained: gained ?? null })}\n`);
}
