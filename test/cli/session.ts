import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { onTestFinished } from "vitest";
import { Hopeless, until } from "../tools/until.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

/** What a person would wait for, in milliseconds, on a busy machine. */
const patienceMs = 15_000;

/** A command as a process of its own, with what it prints and how it ends; it does not outlive the test. */
export class Session {
  /** Both streams, as a terminal would show them. */
  output = "";
  private readonly child: ChildProcess;
  private readonly over: Promise<unknown[]>;
  private read = 0;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = spawn(process.execPath, [bin, ...args], {
      env: { PATH: process.env.PATH, ...env },
      detached: true,
    });
    this.over = once(this.child, "exit");
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += stripVTControlCharacters(text);
      });
    }
    onTestFinished(async () => {
      this.child.kill("SIGKILL");
      await this.over;
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Waits until `pattern` is in what came since the last call; gives what came up to the end of its line. */
  async says(pattern: RegExp): Promise<string> {
    return until(`${this.child.spawnargs.slice(2).join(" ")} says ${pattern}`, patienceMs, async () => {
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

  /** To all its processes, as a terminal does. */
  signal(name: NodeJS.Signals): void {
    if (!this.hasEnded) process.kill(-this.pid, name);
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Resolves with the exit status; null where a signal ended it. */
  async end(): Promise<number | null> {
    await this.over;
    return this.child.exitCode;
  }
}

/** Everything a command says until it ends, and its exit status. */
export async function outcome(...args: readonly string[]): Promise<{ status: number | null; output: string }> {
  const session = new Session(args);
  const status = await session.end();
  return { status, output: session.output };
}

export function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const nothing = "{ apiVersion: v1, kind: ConfigMap, fieldSelector: metadata.name=none }";

/** A function's manifest, which sees nothing happen unless `watch` is given; `spec` is more of its lines. */
export const manifest = (name: string, spec = "", watch = nothing): string => `
apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: ${name} }
spec:
  handler: ./handler.ts
  triggers: [{ watch: ${watch} }]
${spec}`;

/** Writes a function's folder below `functions`. */
export function define(functions: string, name: string, handler = "export default () => {};", text = manifest(name)) {
  write(join(functions, name, "handler.ts"), handler);
  write(join(functions, name, "function.yaml"), text);
}
