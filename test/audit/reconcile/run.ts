// npm run audit:reconcile: 200 owners with two children each, random writes, kills by SIGKILL. Then a wish of 10,000 keys across one.
// AUDIT_SEED makes another run, or the same writes again.
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Dice } from "../../laws/random.ts";
import type { Client } from "../../target/client.ts";
import { until } from "../../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../../tools/watchfire-process.ts";

const owners = 200;
const writes = 4_000;
const kills = 8;
const keys = 10_000;
/** The first of these keys asks for so long that all of them have asked before the kill. Each next one asks for more. */
const wishMs = 90_000;
const spreadMs = 7;
const patienceMs = 180_000;

const seed = Number(process.env.AUDIT_SEED ?? Math.floor(Math.random() * 2 ** 31));
const functions = join(import.meta.dirname, "functions");
const namespace = "/api/v1/namespaces/default";
const say = (line: string) => process.stdout.write(`${line}\n`);

interface Line {
  readonly at: number;
  readonly begins: boolean;
  readonly name: string;
  readonly seen: readonly string[];
  readonly redelivered: boolean;
}

/** What the reconciler said, and where processes ended in between. */
class Told {
  private readonly file: string;
  private read = 0;
  readonly lines: (Line | "killed")[] = [];

  constructor(file: string) {
    this.file = file;
  }

  look(): readonly (Line | "killed")[] {
    const text = readFileSync(this.file, "utf8");
    const end = text.lastIndexOf("\n") + 1;
    for (const line of text.slice(this.read, end).split("\n")) {
      if (!/"msg":"(?:begins|ends)"/.test(line)) continue;
      const { msg, time, fields } = JSON.parse(line);
      this.lines.push({ at: Date.parse(time) || Number(time), begins: msg === "begins", ...fields });
    }
    this.read = end;
    return this.lines;
  }

  killed(): void {
    this.look();
    this.lines.push("killed");
  }
}

/** Writes owners and children at random; knows how each stands. */
class Writer {
  /** The number of each object that stands. */
  readonly numbers = new Map<string, number>();
  private readonly client: Client;
  private readonly dice: Dice;
  private readonly uids = new Map<string, string>();
  private last = 0;
  changes = 0;

  constructor(client: Client, dice: Dice) {
    this.client = client;
    this.dice = dice;
  }

  async write(): Promise<void> {
    const owner = `owner-${this.dice.below(owners)}`;
    const child = this.dice.pick(["", "-x", "-y"]);
    if (child !== "" && !this.numbers.has(owner)) return;
    const name = `${owner}${child}`;
    const plural = child === "" ? "configmaps" : "secrets";
    const path = `${namespace}/${plural}`;
    const number = ++this.last;
    const annotations = { number: String(number) };
    this.changes++;
    if (!this.numbers.has(name)) {
      const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: owner, uid: this.uids.get(owner) }];
      const kind = child === "" ? "ConfigMap" : "Secret";
      const metadata = { name, annotations, labels: { audited: "yes" }, ...(child !== "" && { ownerReferences }) };
      const made = await this.client.post(path, { apiVersion: "v1", kind, metadata });
      if (child === "") this.uids.set(name, made.metadata.uid);
      this.numbers.set(name, number);
    } else if (child !== "" && this.dice.chance(0.2)) {
      await this.client.delete(`${path}/${name}`);
      this.numbers.delete(name);
    } else {
      await this.client.patch(`${path}/${name}`, { metadata: { annotations } });
      this.numbers.set(name, number);
    }
  }
}

async function race(client: Client, runtime: RuntimeProcess, told: Told): Promise<boolean> {
  const writer = new Writer(client, new Dice(seed));
  const from = performance.now();
  for (let kill = 0; kill <= kills; kill++) {
    for (let wave = 0; wave < writes / (kills + 1) / 8; wave++) {
      const eight = Array.from({ length: 8 }, () => writer.write().catch(() => {}));
      for (const each of eight) await each;
    }
    if (kill === kills) break;
    await runtime.kill();
    told.killed();
    await runtime.start();
  }
  const seconds = (performance.now() - from) / 1000;
  const stale = () => {
    const last = new Map<string, Line>();
    for (const line of told.look()) if (line !== "killed" && !line.begins) last.set(line.name, line);
    const numberOf = (name: string) => String(writer.numbers.get(name) ?? "gone");
    return [...writer.numbers.keys()]
      .filter((name) => /^owner-\d+$/.test(name))
      .filter((name) => String(last.get(name)?.seen) !== String([name, `${name}-x`, `${name}-y`].map(numberOf)));
  };
  await until("every last state is reconciled", patienceMs, async () => stale().length === 0).catch(() => {});
  const { twice, runs, unflagged, cut } = verdict(told.lines);
  say(`${writer.changes} changes of ${owners} owners in ${seconds.toFixed(0)} s, ${kills} kills, ${runs} runs`);
  say(
    `runs per change ${(runs / writer.changes).toFixed(2)}; two runs of a key at once: ${twice}; last states not reconciled: ${stale().length}`,
  );
  say(`runs that a kill cut off: ${cut}; not flagged when they came again: ${unflagged}`);
  return twice + stale().length + unflagged === 0;
}

/** From the lines in their order: a run that begins while another of its key goes on, and those that kills cut off. */
function verdict(lines: readonly (Line | "killed")[]) {
  const open = new Set<string>();
  const lost = new Set<string>();
  const counts = { twice: 0, runs: 0, unflagged: 0, cut: 0 };
  for (const line of lines) {
    if (line === "killed") {
      for (const name of open) lost.add(name);
      counts.cut += open.size;
      open.clear();
    } else if (line.begins) {
      counts.runs++;
      if (open.has(line.name)) counts.twice++;
      open.add(line.name);
      if (lost.delete(line.name) && !line.redelivered) counts.unflagged++;
    } else open.delete(line.name);
  }
  return counts;
}

async function wishes(client: Client, runtime: RuntimeProcess, told: Told): Promise<boolean> {
  told.look();
  const before = told.lines.length;
  const due = new Map<string, number>();
  const from = performance.now();
  for (let at = 0; at < keys; at += 50) {
    const some = Array.from({ length: 50 }, (_, index) => at + index);
    await Promise.all(
      some.map(async (index) => {
        // Spread, since a function's log takes 200 lines a second.
        const laterMs = wishMs + index * spreadMs;
        const name = `later-${index}`;
        const metadata = { name, labels: { audited: "yes" } };
        due.set(name, Date.now() + laterMs);
        await client.post(`${namespace}/configmaps`, {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata,
          data: { later: `${laterMs}ms` },
        });
      }),
    );
  }
  await until("all have asked", patienceMs, async () => {
    const { functions } = (await (await runtime.read("/status")).json()) as { functions: { requeued: number }[] };
    return functions[0]?.requeued === keys;
  });
  say(`${keys} keys have asked, ${((performance.now() - from) / 1000).toFixed(0)} s after the first was made`);
  // Finished work is committed within a quarter of a second.
  await pause(1_000);
  await runtime.kill();
  const started = performance.now();
  await runtime.start();
  say(`ready again ${((performance.now() - started) / 1000).toFixed(1)} s after the kill`);
  const runs = () => told.look().slice(before) as Line[];
  const patience = wishMs + keys * spreadMs + patienceMs;
  const names = () => new Set(runs().map(({ name }) => name));
  await until("all ran again", patience, async () => names().size >= keys).catch(() => {});
  // Reckoned from before the object was made, of which its handler had yet to hear.
  const late = runs().map(({ name, at }) => at - (due.get(name) ?? 0));
  late.sort((a, b) => a - b);
  const early = late.filter((ms) => ms < 0).length;
  say(
    `ran again: ${names().size} of ${keys}, more than once: ${late.length - names().size}, before their time: ${early}`,
  );
  const at = (share: number) => Math.round(late[Math.min(late.length - 1, Math.floor(share * late.length))] ?? 0);
  say(`late by p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`);
  return names().size === keys && early === 0;
}

say(`seed ${seed}`);
const folder = await mkdtemp(join(tmpdir(), "watchfire-audit-reconcile-"));
const cluster = await ClusterProcess.start(folder);
const runtime = new RuntimeProcess(folder, cluster.kubeconfig, functions);
let holds = false;
try {
  await runtime.start();
  const told = new Told(runtime.logFile);
  const raced = await race(cluster.client, runtime, told);
  holds = (await wishes(cluster.client, runtime, told)) && raced;
} finally {
  await runtime.kill();
  await cluster.stop();
  await rm(folder, { recursive: true, force: true });
}
say(holds ? "every last state reconciled, never two runs of a key at once, every wish kept" : "the promise is broken");
process.exit(holds ? 0 : 2);
