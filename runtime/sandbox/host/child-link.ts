import type { ChildProcess } from "node:child_process";
import type { Duplex } from "node:stream";
import { MemoryWatch } from "../../v8/resident-memory.ts";
import { executorProgram, type Program, spawnExecutor } from "../executor-program.ts";
import { StartupError } from "../startup-error.ts";
import type { Launch, Link, LinkListener } from "./link.ts";

/** Milliseconds after a process' end within which its stream must end. Another process could hold the stream open. */
const lastWordsMs = 1000;

/** Milliseconds after the first executor's launch within which the others must be requested, if there are functions for them. */
const aheadMs = 3000;

/** Starts executors as children of this process, connected by descriptor 3. */
export const launchChild =
  (program: Program = executorProgram()): Launch =>
  (listener) =>
    new ChildLink(spawnExecutor(program, "pipe"), listener);

/**
 * Like `launchChild`, but starts the first `count` executors at once, so that they start up while this process does other work.
 * Those that are not requested within `aheadMs` of the first are ended.
 */
export function launchAhead(count = 1, program: Program = executorProgram()): Launch {
  const ahead = Array.from({ length: count }, () => spawnExecutor(program, "pipe"));
  for (const child of ahead) child.on("error", () => undefined);
  const endRest = () => {
    for (const child of ahead.splice(0)) child.kill("SIGKILL");
  };
  let isAsked = false;
  return (listener) => {
    if (!isAsked) setTimeout(endRest, aheadMs).unref();
    isAsked = true;
    let child = ahead.shift();
    while (child && (child.exitCode !== null || child.signalCode !== null)) child = ahead.shift();
    return new ChildLink(child ?? spawnExecutor(program, "pipe"), listener);
  };
}

class ChildLink implements Link {
  private readonly listener: LinkListener;
  private readonly child: ChildProcess;
  private readonly stream: Duplex;
  private readonly memory: MemoryWatch;
  private readonly error: StartupError;
  private overMemory: string | undefined;
  private over = false;
  private corked = false;

  constructor(child: ChildProcess, listener: LinkListener) {
    this.listener = listener;
    this.child = child;
    this.stream = this.child.stdio[3] as Duplex;
    this.error = new StartupError(child.stderr);
    this.stream.on("data", (chunk: Buffer) => listener.data(chunk));
    this.stream.on("error", () => this.kill());
    this.child.on("error", (error) => this.end(error.message));
    this.child.on("exit", (code, signal) => this.exited(signal ?? `status ${code}`));
    this.memory = new MemoryWatch(this.child.pid, Number.POSITIVE_INFINITY, (detail) => {
      this.overMemory = detail;
      this.kill();
    });
    process.nextTick(() => listener.opened());
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get peakMemory(): number {
    return this.memory.peak;
  }

  /** Combines all writes of one turn into one system call. */
  write(bytes: Buffer, taken?: () => void): void {
    if (!this.corked) {
      this.corked = true;
      this.stream.cork();
      process.nextTick(() => {
        this.corked = false;
        this.stream.uncork();
      });
    }
    this.stream.write(bytes, taken);
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  capMemory(bytes: number): void {
    this.memory.cap = bytes;
  }

  mayRun(isPossible: boolean): void {
    this.memory.look(isPossible);
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }

  private exited(how: string): void {
    // Data written before its end is still in the pipe. It includes which functions were running.
    this.stream.resume();
    const end = () => this.error.explain(how, (detail) => this.end(detail));
    if (this.stream.readableEnded || this.stream.destroyed) end();
    else {
      for (const event of ["close", "end"]) this.stream.once(event, end);
      setTimeout(() => this.end(how), lastWordsMs).unref();
    }
  }

  private end(detail: string): void {
    if (this.over) return;
    this.over = true;
    this.memory.stop();
    this.stream.destroy();
    this.listener.ended(this.overMemory ? "memory" : "exited", this.overMemory ?? detail);
  }
}
