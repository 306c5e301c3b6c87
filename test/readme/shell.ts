import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { helmPath, kubectlPath } from "../tools/kubectl.ts";
import { TalkingProcess } from "../tools/talking-process.ts";
import { commandsOf } from "./blocks.ts";

const root = join(import.meta.dirname, "../..");
const bin = join(root, "runtime/bin/watchfire.js");

/** A user's terminal in a separate folder of the checkout, from which the SDK can be imported. */
export class Shell {
  readonly folder: string;
  private readonly env: NodeJS.ProcessEnv;
  private readonly texts: Readonly<Record<string, string>>;
  private readonly ran: string[] = [];

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
    const shims = {
      // This checkout's command, as in the image.
      npx: `shift; exec ${process.execPath} ${bin} "$@"`,
      watchfire: `exec ${process.execPath} ${bin} "$@"`,
      node: `exec ${process.execPath} "$@"`,
      helm: `exec ${await helmPath()} "$@"`,
      // This cluster runs no pods, so a command of `kubectl exec` runs locally.
      kubectl: `[ "$1" != exec ] || { while [ "$1" != -- ]; do shift; done; shift; exec "$@"; }\nexec ${await kubectlPath()} "$@"`,
    };
    for (const [name, text] of Object.entries(shims)) {
      shell.write(`bin/${name}`, `#!/bin/sh\n${text}\n`);
      chmodSync(join(folder, "bin", name), 0o755);
    }
    symlinkSync(join(root, "deploy"), join(folder, "deploy"));
    // Only these functions of the checkout are type-checked.
    shell.write("tsconfig.json", JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["functions"] }));
    return shell;
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true });
    writeFileSync(join(this.folder, file), text);
  }

  /** Runs a command and returns its output. Rejects with its error output if it fails. */
  async run(command: string): Promise<string> {
    this.ran.push(command);
    const words = ["-ec", this.here(command)];
    return (await promisify(execFile)("sh", words, { cwd: this.folder, env: this.env })).stdout;
  }

  /** Starts a long-running command, which ends with the test. */
  start(command: string): TalkingProcess {
    this.ran.push(command);
    const words = ["-ec", `exec ${this.here(command).replace(/ &$/, "")}`];
    return new TalkingProcess("sh", words, { cwd: this.folder, env: this.env, patienceMs: 30_000 });
  }

  /** The page's commands that were not run here, with or without further arguments. */
  missed(page: string): string[] {
    return commandsOf(page).filter((command) => !this.ran.some((each) => each.startsWith(command)));
  }

  private here(command: string): string {
    return Object.entries(this.texts).reduce((text, [from, to]) => text.replaceAll(from, to), command);
  }
}
