import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { stripVTControlCharacters } from "node:util";
import { onTestFinished } from "vitest";
import { Hopeless, until } from "./until.ts";

/** How long a person would wait on a busy machine, in milliseconds. */
const patienceMs = 15_000;

export interface TalkingProcessOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** How long `says` waits, in milliseconds. */
  readonly patienceMs?: number;
}

/** A program in a separate process, with its output and its exit. It does not outlive the test. */
export class TalkingProcess {
  /** Both streams, as a terminal would show them. */
  output = "";
  private readonly name: string;
  private readonly child: ChildProcess;
  private readonly over: Promise<unknown[]>;
  private readonly patienceMs: number;
  private read = 0;

  constructor(program: string, args: readonly string[], options: TalkingProcessOptions = {}) {
    this.name = [program, ...args].join(" ");
    this.patienceMs = options.patienceMs ?? patienceMs;
    this.child = spawn(program, args, {
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      env: { PATH: process.env.PATH, ...options.env },
      detached: true,
    });
    this.over = once(this.child, "exit");
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += stripVTControlCharacters(text);
      });
    }
    onTestFinished(async () => {
      this.killAll();
      await this.over;
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /**
   * Waits until `pattern` matches the output since the last call. Returns the output up to the end of the matching line.
   */
  async says(pattern: RegExp): Promise<string> {
    return until(`${this.name} says ${pattern}`, this.patienceMs, async () => {
      const news = this.output.slice(this.read);
      const match = pattern.exec(news);
      const end = match ? news.indexOf("\n", match.index + match[0].length) : -1;
      if (end < 0) {
        if (this.child.exitCode !== null) throw new Hopeless(`it ended with ${this.child.exitCode}:\n${this.output}`);
        throw new Error(`so far:\n${news}`);
      }
      this.read += end + 1;
      return news.slice(0, end + 1);
    });
  }

  /** Types text, as a person at its terminal. */
  type(text: string): void {
    this.child.stdin?.write(text);
  }

  /** Sends a signal to all its processes, as a terminal does. */
  signal(name: NodeJS.Signals): void {
    if (!this.hasEnded) process.kill(-this.pid, name);
  }

  /** Sends a signal to the started process only, as a supervisor does. */
  signalAlone(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Resolves with the exit status; null if a signal ended it. */
  async end(): Promise<number | null> {
    await this.over;
    return this.child.exitCode;
  }

  private killAll(): void {
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch {
      // All of them are gone.
    }
  }
}
