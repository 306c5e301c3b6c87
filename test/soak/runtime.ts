// A whole runtime for hours, on a real kube-apiserver if KUBEBUILDER_ASSETS names one. The auditor judges every phase.
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { residentBytes } from "../../runtime/v8/resident-memory.ts";
import { describe, isFaultless } from "../audit/audit.ts";
import { asInFile, edits } from "../audit/edits.ts";
import { ReplicasFixture } from "../audit/replicas-fixture.ts";
import { watchfire } from "../cli/run.ts";
import { define, manifest } from "../cli/session.ts";
import { Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { startTarget } from "../target/target.ts";
import { assetsFolder } from "../tools/assets.ts";
import { Relay } from "../tools/relay.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";

/** Operations of the writer in each step. */
const operations = 120;
/** Maximum duration of a cycle, in milliseconds: the disturbances, then steady work of one process. */
const longestCycleMs = 30 * 60_000;
/** Time between two cuts of all connections, in milliseconds: an informer's backoff starts over after two minutes without a failure. */
const cutEveryMs = 150_000;
/** Duration of steady work from which on memory and disk are judged, in milliseconds, and their allowed growth. */
const judgedMs = 10 * 60_000;
const flat = 1.1;
/** Objects that the writer creates, changes and deletes. */
const objects = 300;

const mebibytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
const say = (text: string) => process.stdout.write(`${text}\n`);

/** Runs cycles until the time is over. Returns whether every law held. */
export async function soakRuntime(durationMs: number): Promise<boolean> {
  const name = assetsFolder() === undefined ? "embedded" : "real";
  say(`on the ${name} cluster, for ${Math.round(durationMs / 60_000)} minutes`);
  const target = await startTarget(name);
  const admin = new Client(target.access);
  const folder = mkdtempSync(join(tmpdir(), "watchfire-soak-"));
  const soak = await Soak.on(target, admin, folder);
  try {
    const until = performance.now() + durationMs;
    for (let cycle = 1; performance.now() < until && soak.holds; cycle++) {
      say(`cycle ${cycle}`);
      await soak.cycle(Math.min(until, performance.now() + longestCycleMs));
    }
    return soak.holds;
  } finally {
    await soak.close();
    await admin.close();
    await target.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Soak {
  /** False once a law was broken. */
  holds = true;
  private readonly target: Awaited<ReturnType<typeof startTarget>>;
  private readonly on: ReplicasFixture;
  private readonly folder: string;
  private readonly relay: Relay;
  private replica: Replica | undefined;
  private deployments = 0;
  private edited = 0;

  private constructor(target: Soak["target"], on: ReplicasFixture, folder: string, relay: Relay) {
    this.target = target;
    this.on = on;
    this.folder = folder;
    this.relay = relay;
  }

  static async on(target: Soak["target"], admin: Client, folder: string): Promise<Soak> {
    const on = await ReplicasFixture.set(admin, target.access, "soak", { objects, apart: true });
    const relay = await Relay.to(target.access.url);
    const soak = new Soak(target, on, folder, relay);
    writeFileSync(soak.file("direct"), kubeconfigOf(target.access, on.namespace), { mode: 0o600 });
    writeFileSync(soak.file("relayed"), kubeconfigOf({ ...target.access, url: relay.url }, on.namespace), {
      mode: 0o600,
    });
    await soak.start();
    return soak;
  }

  /** Disturbs the runtime in each way, then lets one process work until `end`. */
  async cycle(end: number): Promise<void> {
    const { on } = this;
    await this.phase("churn", () => on.load(operations));
    await this.phase("killed amid writing", async () => {
      await on.load(operations);
      on.write(operations);
      await this.running.kill();
      await this.start();
    });
    await this.phase("edited while it is down", async () => {
      const shape = edits[this.edited++ % edits.length] ?? asInFile;
      for (const each of [shape, asInFile]) {
        await on.edit(each, async () => {
          on.write(operations);
          await this.terminate();
          await this.start();
        });
      }
    });
    await this.phase("history lost while it is down", () =>
      on.loseHistory(operations, {
        end: () => this.running.kill(),
        compact: () => this.target.compact(),
        begin: () => this.start(),
      }),
    );
    await this.phase("an older backup restored", async () => {
      await on.load(operations);
      const { data } = this.running.options;
      await this.command("backup", "--data", data, "--to", this.file("backup.db"));
      await on.load(operations);
      await this.terminate();
      on.write(operations);
      await this.command("restore", "--data", data, "--from", this.file("backup.db"), "--yes");
      await this.start();
    });
    await this.steady(end);
  }

  /** One process works on, with cut connections, deployments and rollbacks, at least once. Its memory and its file stay flat. */
  private async steady(end: number): Promise<void> {
    const from = performance.now();
    const samples: { readonly resident: number; readonly file: number }[] = [];
    let cutAt = Number.NEGATIVE_INFINITY;
    do {
      const isCut = performance.now() - cutAt > cutEveryMs;
      if (isCut) cutAt = performance.now();
      await this.phase(isCut ? "a deployment, and all connections cut" : "a deployment", async () => {
        await this.on.load(operations);
        this.on.write(operations);
        if (isCut) this.relay.cut();
        await this.deploy();
      });
      const { pid, options } = this.running;
      const file = statSync(join(options.data, "checkpoint.db")).size;
      samples.push({ resident: residentBytes(pid), file });
    } while (performance.now() < end && this.holds);
    const tookMs = performance.now() - from;
    for (const measure of ["resident", "file"] as const) {
      const values = samples.map((sample) => sample[measure]);
      const third = Math.ceil(values.length / 3);
      const [first, last] = [median(values.slice(0, third)), median(values.slice(-third))];
      const isFlat = tookMs < judgedMs || last <= first * flat;
      this.holds &&= isFlat;
      say(
        `${isFlat ? "  " : "NO"} ${measure}: ${mebibytes(first)} -> ${mebibytes(last)} MiB in ${Math.round(tookMs / 1000)} s of one process`,
      );
    }
  }

  /** Deploys a new revision of a function in another set, or rolls back to the one before. */
  private async deploy(): Promise<void> {
    const number = this.deployments++;
    const of = ["--namespace", this.on.namespace, "--set", "side", "--kubeconfig", this.file("direct"), "--yes"];
    if (number % 3 === 2) await this.command("rollback", ...of);
    else {
      define(this.file("side"), "side", `export default () => ${number};\n`, manifest("side"));
      await this.command("deploy", "--functions", this.file("side"), ...of);
    }
    await until("the deployed function is ready", 60_000, async () => {
      const { functions } = await this.running.status();
      return functions.some(({ name, ready }) => name === "side" && ready);
    });
  }

  private async phase(what: string, work: () => Promise<unknown>): Promise<void> {
    if (!this.holds) return;
    const from = performance.now();
    await work();
    const verdict = await this.on.verdict();
    this.holds = isFaultless(verdict);
    const seconds = Math.round((performance.now() - from) / 1000);
    say(`${this.holds ? "  " : "NO"} ${what}, ${seconds} s: ${describe(verdict)}`);
  }

  private get running(): Replica {
    if (!this.replica) throw new Error("there is no replica");
    return this.replica;
  }

  private async start(): Promise<void> {
    const over = { pod: "watchfire-0", kubeconfig: this.file("relayed"), deployed: true };
    const replica = await this.on.start("sqlite", over);
    await until("it is ready", 60_000, async () => (await replica.read("/readyz")).ok);
    this.replica = replica;
  }

  private async terminate(): Promise<void> {
    this.running.signal("SIGTERM");
    await this.running.ended();
  }

  private async command(...args: readonly string[]): Promise<void> {
    const { status, stderr } = await watchfire(args);
    if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
  }

  private file(name: string): string {
    return join(this.folder, name);
  }

  async close(): Promise<void> {
    await this.on[Symbol.asyncDispose]();
    await this.relay[Symbol.asyncDispose]();
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
