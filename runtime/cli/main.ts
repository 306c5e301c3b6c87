import { Socket } from "node:net";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { version } from "../base/version.ts";
import type { Command } from "./command.ts";
import { invoke, report } from "./invoke.ts";

/** Each command is imported on demand, so that it does not load the libraries of others. In the order of the help. */
export const commands: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import("./init.ts")).init,
  new: async () => (await import("./new.ts")).newFunction,
  dev: async () => (await import("./dev.ts")).dev,
  start: async () => (await import("./start.ts")).start,
  executor: async () => (await import("./executor.ts")).executor,
  kubectl: async () => (await import("./kubectl.ts")).kubectl,
  cluster: async () => (await import("./cluster.ts")).cluster,
  validate: async () => (await import("./validate.ts")).validate,
  record: async () => (await import("./record.ts")).record,
  test: async () => (await import("./test.ts")).test,
  types: async () => (await import("./types.ts")).types,
  rbac: async () => (await import("./rbac.ts")).rbac,
  doctor: async () => (await import("./doctor.ts")).doctor,
  build: async () => (await import("./build.ts")).build,
  deploy: async () => (await import("./deploy.ts")).deploy,
  revisions: async () => (await import("./revisions.ts")).revisions,
  rollback: async () => (await import("./rollback.ts")).rollback,
  canary: async () => (await import("./canary.ts")).canary,
  promote: async () => (await import("./promote.ts")).promote,
  abort: async () => (await import("./promote.ts")).abort,
  undeploy: async () => (await import("./undeploy.ts")).undeploy,
  status: async () => (await import("./status.ts")).status,
  support: async () => (await import("./support.ts")).support,
  console: async () => (await import("./console.ts")).openConsole,
  explain: async () => (await import("./explain.ts")).explain,
  runs: async () => (await import("./runs.ts")).runs,
  logs: async () => (await import("./logs.ts")).logs,
  run: async () => (await import("./run.ts")).run,
  redeliver: async () => (await import("./redeliver.ts")).redeliver,
  slots: async () => (await import("./slots.ts")).slots,
  migrate: async () => (await import("./migrate.ts")).migrate,
  backup: async () => (await import("./backup.ts")).backup,
  restore: async () => (await import("./restore.ts")).restore,
  pause: async () => (await import("./pause.ts")).pause,
  resume: async () => (await import("./pause.ts")).resume,
  "dead-letters": async () => (await import("./dead-letters.ts")).deadLetters,
};

/**
 * The entry point of the command line: runs one command and ends the process. Exit status: 0 for success, 1 for the user's
 * mistake, 2 for a failure of the system. `program`: the words that start it, for help texts.
 */
export async function main(args: readonly string[], program = "watchfire"): Promise<void> {
  refuseDebuggers();
  dieWithLauncher();
  outliveReaders();
  process.exit(await run(args, program));
}

async function run(args: readonly string[], program: string): Promise<number> {
  try {
    const [name, ...rest] = args;
    if (name === undefined || name === "--help" || name === "-h" || name === "help") {
      process.stdout.write(await overview(program));
      return name === undefined ? 1 : 0;
    }
    if (name === "--version" || name === "-v" || name === "version") {
      process.stdout.write(`${version}\n`);
      return 0;
    }
    const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (!load) throw noSuchCommand(name, program);
    return await invoke(await load(), rest, program);
  } catch (error) {
    return report(error);
  }
}

function noSuchCommand(name: string, program: string): WatchfireError {
  const meant = suggest(name, Object.keys(commands));
  const hint = meant === undefined ? {} : { hint: `did you mean \`${program} ${meant}\`?` };
  return new WatchfireError("WF_CLI_USAGE", { what: "there is no such command", actual: name, ...hint });
}

async function overview(program: string): Promise<string> {
  const loaded = await Promise.all(Object.values(commands).map((load) => load()));
  const width = Math.max(...loaded.map((command) => command.name.length));
  return [
    `${program} <command> [options]`,
    "",
    ...loaded.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`),
    "",
    `${program} <command> --help lists its options, ${program} --version prints the version.`,
    "",
  ].join("\n");
}

/**
 * Keeps Node from opening its inspector at SIGUSR1. Whoever may send a signal, such as a guest that controls its executor, could
 * then control this process.
 */
function refuseDebuggers(): void {
  process.on("SIGUSR1", () => undefined);
}

/** Ignores a closed reader (`| head`): it must not end a command that may be half done, nor change its exit status. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
}

/**
 * Ends the process when its launcher ends. A launcher on an older Node holds the other end of a pipe, which closes by whatever
 * signal it dies.
 */
function dieWithLauncher(): void {
  let fd: number | undefined;
  try {
    fd = readEnvironment().launcherFd;
  } catch {
    return; // reported by the command that reads the environment
  }
  if (fd === undefined) return;
  const pipe = new Socket({ fd, readable: true, writable: false });
  pipe.on("close", () => process.kill(process.pid, "SIGKILL"));
  pipe.on("error", () => undefined);
  pipe.resume();
  pipe.unref();
}
