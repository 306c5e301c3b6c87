import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";

// The program's end is tied to a pipe that this process holds. Should we die in any way at all, the kernel closes the
// pipe, `cat` returns, and the shell kills the program.
const leash = 'exec 3<&0; "$@" </dev/null & pid=$!; { cat <&3 >/dev/null; kill -KILL $pid; } 2>/dev/null & wait $pid';

/** A program that never outlives this process. */
export class LeashedProcess {
  readonly name: string;
  private readonly shell: ChildProcess;
  private readonly over: Promise<unknown>;

  /** Starts `path`; its output goes to `logFile`. `env` is set beside what this process has. */
  constructor(path: string, args: readonly string[], logFile: string, env: Readonly<Record<string, string>> = {}) {
    this.name = path.split("/").at(-1) ?? path;
    this.shell = spawn("sh", ["-c", leash, "sh", path, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    this.over = once(this.shell, "exit");
    const log = createWriteStream(logFile, { flags: "a" });
    this.shell.stdout?.pipe(log, { end: false });
    this.shell.stderr?.pipe(log, { end: false });
    this.shell.stdin?.on("error", () => {});
  }

  /** Its exit status once it has ended by itself, or null. */
  get exitStatus(): number | null {
    return this.shell.exitCode;
  }

  /** Kills it and waits until it is gone. */
  async kill(): Promise<void> {
    this.shell.stdin?.destroy();
    await this.over;
  }
}
