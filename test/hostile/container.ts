import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { until } from "../tools/until.ts";

const checkout = resolve(import.meta.dirname, "../..");
/** Folders of the checkout that the container's programs read. */
const readable = ["node_modules", "runtime", "sdk", "test"];
/**
 * Mounts them into the folder of the first argument, and runs the remaining arguments. The checkout may be below a private
 * folder.
 */
const mounting = `from=$0; to=$1; shift; for part in ${readable.join(" ")}; do mount --bind "$from/$part" "$to/$part" || exit; done; exec "$@"`;

/** The image's user. */
const user = 65_532;
/**
 * The same start as a container of the chart: no capability, no new privileges. The shell's start makes them effective for the
 * program.
 */
const asGuest = `setpriv --reuid ${user} --regid ${user} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all`;
const command = [...asGuest.split(" "), "sh", "-c", 'exec "$0" "$@"'];

/** The reason why no container can be created here; `undefined` if one can. */
export const whyNot = ((): string | undefined => {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "it takes root on Linux";
  const missing = ["unshare", "nsenter", "setpriv", "mount"].filter((name) => !existsSync(`/usr/bin/${name}`));
  if (missing.length > 0) return `there is no ${missing.join(", no ")}`;
  // The root user of a container may lack the capability.
  const { status } = spawnSync("unshare", ["--pid", "--fork", "--mount-proc", "true"]);
  return status === 0 ? undefined : "root makes no namespaces here";
})();

/**
 * Creates a folder with the permissions of the pod's volume: executors may open its files, but change nothing. Returns the
 * socket's path.
 */
export function socketFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-container-"));
  chownSync(folder, 0, user);
  chmodSync(folder, 0o2750); // files in it get the group of the folder
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "executor.sock");
}

/** Node with the permissions of the image: its user may run it, but not read it. */
export function imagesNode(): string {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-node-"));
  chmodSync(folder, 0o755);
  const node = join(folder, "node");
  copyFileSync(process.execPath, node);
  chmodSync(node, 0o711);
  return node;
}

/** An empty folder that all may enter, into which the container mounts the checkout. */
function mountPoint(): string {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-checkout-"));
  chmodSync(folder, 0o755);
  for (const part of readable) mkdirSync(join(folder, part));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A `watchfire executor` as process 1 of a separate PID namespace, with further processes of its user. */
export class ExecutorContainer {
  private readonly node: string;
  private readonly socket: string;
  private readonly code = mountPoint();
  private readonly outer: ChildProcess;
  private readonly over: Promise<unknown>;

  constructor(node: string, socket: string) {
    this.node = node;
    this.socket = socket;
    const cli = join(this.code, "runtime/bin/watchfire.js");
    const own = ["sh", "-c", mounting, checkout, this.code, ...command, node, cli, "executor", "--socket", socket];
    const env = { PATH: process.env.PATH, WARDENS_SECRET: "of its environment" };
    this.outer = spawn("unshare", ["--pid", "--fork", "--mount-proc", "--kill-child", ...own], {
      cwd: "/",
      env,
      stdio: "ignore",
    });
    this.over = once(this.outer, "exit");
    onTestFinished(async () => {
      if (this.outer.exitCode === null && this.outer.signalCode === null) this.kill();
      await this.over;
    });
  }

  /** The machine's pid of the container's first process. */
  private get first(): number {
    const { pid } = this.outer;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim());
  }

  /** Kills the first process as the kernel would. */
  kill(): void {
    process.kill(this.first, "SIGKILL");
  }

  /** Resolves when the first process ends. */
  get ended(): Promise<unknown> {
    return this.over;
  }

  /** Runs a guest that has left its isolate. Returns its gains so far, and its end. */
  async invade(...deeds: string[]): Promise<Invader> {
    const impostor = join(this.code, "test/hostile/executors/impostor.program.ts");
    const inside = ["-t", String(this.first), "-p", "-m", ...command, this.node, impostor, this.socket, ...deeds];
    const invader = new Invader(spawn("nsenter", inside, { stdio: ["ignore", "pipe", "inherit"] }));
    return invader;
  }
}

export class Invader {
  readonly gained: Record<string, unknown> = {};
  readonly ended: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.ended = once(child, "exit");
    if (!child.stdout) throw new Error("its output is to be read");
    createInterface(child.stdout).on("line", (line) => {
      const { deed, gained } = JSON.parse(line) as { deed: string; gained: unknown };
      this.gained[deed] = gained;
    });
  }

  /** Waits until it has reported a deed. */
  async did(deed: string): Promise<unknown> {
    await until(`the invader did ${deed}`, 10_000, async () => deed in this.gained);
    return this.gained[deed];
  }
}
