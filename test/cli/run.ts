import { execFile } from "node:child_process";
import { join } from "node:path";

/** The program in this checkout. */
export const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

/** Adds a port that the system chooses to the arguments of a runtime, unless they name one. */
export function onFreePort(args: readonly string[]): readonly string[] {
  const [command = ""] = args;
  const option = { dev: ["--port", "0"], start: ["--listen", "127.0.0.1:0"] }[command] ?? [];
  return args.some((arg) => arg === option[0]) ? args : [...args, ...option];
}

/** The exit and the output of a command. */
export interface Result {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command to its end in a separate process. Its environment contains only the given variables and PATH. */
export function watchfire(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd?: string): Promise<Result> {
  const options = { env: { PATH: process.env.PATH, ...env }, cwd };
  return new Promise((done) => {
    execFile(process.execPath, [bin, ...onFreePort(args)], options, (error, stdout, stderr) => {
      done({ status: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}
