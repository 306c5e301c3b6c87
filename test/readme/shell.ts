import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { kubectlPath } from "../tools/kubectl.ts";
import { TalkingProcess } from "../tools/talking-process.ts";

const root = join(import.meta.dirname, "../..");
const bin = join(root, "runtime/bin/watchfire.js");

/** A user's terminal, in a folder of its own within the checkout, where the SDK is found. */
export class Shell {
  readonly folder: string;
  private readonly env: NodeJS.ProcessEnv;
  private readonly texts: Readonly<Record<string, string>>;

  private constructor(folder: string, texts: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.texts = texts;
    this.env = { PATH: `${join(folder, "bin")}:${process.env.PATH}`, HOME: folder };
  }

  /** @param texts what stands in the pages, such as a port, and what it is here. */
  static async open(texts: Readonly<Record<string, string>> = {}): Promise<Shell> {
    const cache = join(root, "node_modules/.cache/watchfire");
    mkdirSync(cache, { recursive: true });
    const folder = mkdtempSync(join(cache, "shell-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const shell = new Shell(folder, texts);
    // `npx watchfire` is this checkout's.
    const shims = { npx: `shift; exec ${process.execPath} ${bin} "$@"`, kubectl: `exec ${await kubectlPath()} "$@"` };
    for (const [name, text] of Object.entries(shims)) {
      shell.write(`bin/${name}`, `#!/bin/sh\n${text}\n`);
      chmodSync(join(folder, "bin", name), 0o755);
    }
    // Of the checkout, no more than these functions are type-checked.
    shell.write("tsconfig.json", JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["functions"] }));
    return shell;
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true });
    writeFileSync(join(this.folder, file), text);
  }

  /** Gives what a command prints; fails with what it complains of. */
  async run(command: string): Promise<string> {
    const words = ["-ec", this.here(command)];
    return (await promisify(execFile)("sh", words, { cwd: this.folder, env: this.env })).stdout;
  }

  /** Starts a command that goes on; it ends with the test. */
  start(command: string): TalkingProcess {
    const words = ["-ec", `exec ${this.here(command).replace(/ &$/, "")}`];
    return new TalkingProcess("sh", words, { cwd: this.folder, env: this.env, patienceMs: 30_000 });
  }

  private here(command: string): string {
    return Object.entries(this.texts).reduce((text, [from, to]) => text.replaceAll(from, to), command);
  }
}
