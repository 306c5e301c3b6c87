import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { stripVTControlCharacters } from "node:util";
import { until } from "../../tools/until.ts";
import type { RecordedLine, RecordedPane } from "./picture.ts";

const patienceMs = 30_000;
/** How long a person needs to read a command before its answer comes, in milliseconds. */
const typingMs = 900;

/** The folder and the environment of commands, and how their output is shown. */
export interface Place {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** The beginning of all recorded times, in milliseconds of `performance.now()`. */
  readonly since: number;
  /** Replaces what differs from machine to machine. */
  readonly shown: (line: string) => string;
}

/** A terminal in which commands are typed one after another, and whose lines are recorded. */
export class Terminal implements RecordedPane {
  readonly title: string;
  readonly lines: RecordedLine[] = [];
  private readonly place: Place;
  private child: ChildProcess | undefined;

  constructor(title: string, place: Place) {
    this.title = title;
    this.place = place;
  }

  /** Types a command, which runs in the background. `argv` is the program that stands for what is shown. */
  async start(command: string, argv: readonly [program: string, ...args: string[]]): Promise<void> {
    await pause(typingMs);
    this.add(`\x1b[32m$\x1b[0m \x1b[1m${command}\x1b[0m`);
    await pause(typingMs);
    const [program, ...args] = argv;
    const child = spawn(program, args, {
      cwd: this.place.folder,
      env: this.place.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    for (const stream of [child.stdout, child.stderr]) {
      let rest = "";
      stream.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) this.add(line);
      });
    }
  }

  /** Types a command and waits until it ends. */
  async run(command: string, argv: readonly [program: string, ...args: string[]]): Promise<void> {
    await this.start(command, argv);
    if (this.child) await once(this.child, "close");
  }

  /** Waits for a line. */
  async says(pattern: RegExp): Promise<void> {
    await until(`${this.title} says ${pattern}`, patienceMs, async () => {
      const text = this.lines.map((line) => stripVTControlCharacters(line.text)).join("\n");
      if (!pattern.test(text)) throw new Error(text);
      return true;
    });
  }

  /** Ends the command that runs. Later output is not recorded. */
  async end(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null) return;
    for (const stream of [child.stdout, child.stderr]) stream?.removeAllListeners("data").resume();
    const closed = once(child, "close");
    child.kill("SIGTERM");
    await closed;
  }

  private add(text: string): void {
    this.lines.push({ at: Math.round(performance.now() - this.place.since), text: this.place.shown(text) });
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
