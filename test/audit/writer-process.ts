import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { Hopeless, until } from "../tools/until.ts";
import { namespaces } from "./ledger.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

/** A process that writes, up to the allowed number of operations. */
export class Writer {
  private readonly child: ChildProcess;
  /** Operations so far. */
  done = 0;
  private allowed = 0;

  /** `shares`: number of groups into which the objects are divided, by a label. */
  constructor(kubeconfig: string, objects: number, seed: number, where = namespaces, shares = 1) {
    const args = [kubeconfig, String(objects), String(seed), where.objects, String(shares)];
    this.child = fork(join(import.meta.dirname, "writer.ts"), args);
    this.child.on("message", (message: FromWriter) => {
      this.done = message.done;
    });
  }

  /** Allows so many further operations. */
  allow(operations: number): void {
    this.allowed += operations;
    this.child.send({ allow: this.allowed } satisfies ToWriter);
  }

  /** Number of allowed operations that are left. */
  get behind(): number {
    return this.allowed - this.done;
  }

  /** Resolves when at most so many of the allowed operations are left. */
  async left(operations: number): Promise<void> {
    await until("the writer writes", 120_000, async () => {
      this.assertRunning();
      return this.behind <= operations;
    });
  }

  /** @throws Hopeless if it ended by itself; it has printed the reason */
  assertRunning(): void {
    if (this.child.exitCode !== null) throw new Hopeless("the writer ended");
  }

  stop(): void {
    this.child.kill("SIGKILL");
  }
}
