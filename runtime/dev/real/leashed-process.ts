import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { readVariables } from "../../base/variables.ts";

// Ties the program's life to a pipe that this process holds. If this process ends in any way, the kernel closes the pipe, `cat`
// returns, and the shell kills the program.
const leash = 'exec 3<&0; "$@" </dev/null & pid=$!; { cat <&3 >/dev/null; kill -KILL $pid; } 2>/dev/null & wait $pid';

/** A program that never outlives this process. A terminal's Ctrl-C does not reach it. */
export class LeashedProcess {
  readonly name: string;
  private readonly shell: ChildProcess;
  private readonly over: Promise<unknown>;

  /** Starts `path`; its output goes to `logFile`. `env` is added to the variables of this process. */
  constructor(path: string, args: readonly string[], logFile: string, env: Readonly<Record<string, string>> = {}) {
    this.name = path.split("/").at(-1) ?? path;
    this.shell = spawn("sh", ["-c", leash, "sh", path, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...readVariables(), ...env },
      detached: true,
    });
    this.over = once(this.shell, "exit");
    const log = createWriteStream(logFile, { flags: "a" });
    this.shell.stdout?.pipe(log, { end: false });
    this.shell.stderr?.pipe(log, { end: false });
    this.shell.stdin?.on("error", () => {});
  }

  /** Its exit status if it has ended by itself; null otherwise. */
  get exitStatus(): number | null {
    return this.shell.exitCode;
  }

  /** Kills it and waits until it is gone. */
  async kill(): Promise<void> {
    this.shell.stdin?.destroy();
    await this.over;
  }
}
