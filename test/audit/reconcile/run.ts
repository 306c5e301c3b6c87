// npm run audit:reconcile: 200 owners with two children each, random writes, and kills by SIGKILL, each with an edit of the
// manifest. Then 10,000 keys ask to be run later, across a kill. AUDIT_SEED selects a run; the same seed repeats the writes.
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Dice } from "../../laws/random.ts";
import type { Client } from "../../target/client.ts";
import { until } from "../../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../../tools/watchfire-process.ts";
import { edits, type Shape, writeReconciler } from "./edits.ts";

const owners = 200;
const writes = 4_000;
const kills = edits.length;
const keys = 10_000;
/**
 * The delay that the first of these keys asks for: long enough that all keys have asked before the kill. Each further key asks
 * for a longer one.
 */
const wishMs = 90_000;
const spreadMs = 7;
const patienceMs = 180_000;

const seed = Number(process.env.AUDIT_SEED ?? Math.floor(Math.random() * 2 ** 31));
const namespace = "/api/v1/namespaces/default";
const say = (line: string) => process.stdout.write(`${line}\n`);

interface Begins {
  readonly msg: "begins";
  readonly at: number;
  readonly name: string;
  /** The number in the object that the run received. */
  readonly number: string;
  readonly redelivered: boolean;
}
interface Ends {
  readonly msg: "ends";
  readonly name: string;
  /** The numbers that the run saw of the owner and its children. */
  readonly seen: readonly string[];
  /** The number in the object's data; `none` if it has no data. */
  readonly data: string;
}
/** An event, in mode All. */
interface Event {
  readonly msg: "told";
  readonly name: string;
  readonly number: string;
  readonly redelivered: boolean;
}
/** Marks the kill of a process. The next process has this manifest. */
interface Killed {
  readonly msg: "killed";
  readonly next: Shape;
}
type Line = Begins | Ends | Event | Killed;

/** The lines that the function logged, and the kills between them. */
class Told {
  private readonly file: string;
  private read = 0;
  readonly lines: Line[] = [];

  constructor(file: string) {
    this.file = file;
  }

  look(): readonly Line[] {
    const text = readFileSync(this.file, "utf8");
    const end = text.lastIndexOf("\n") + 1;
    for (const line of text.slice(this.read, end).split("\n")) {
      if (!/"msg":"(?:begins|ends|told)"/.test(line)) continue;
      const { msg, time, fields } = JSON.parse(line);
      this.lines.push({ msg, at: Date.parse(time) || Number(time), ...fields });
    }
    this.read = end;
    return this.lines;
  }

  killed(next: Shape = {}): void {
    this.look();
    this.lines.push({ msg: "killed", next });
  }
}

/** Writes owners and children at random, and records the state of each. */
class Writer {
  /** The number of each existing object. */
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
      const made = await this.client.post(path, { apiVersion: "v1", kind, metadata, ...dataOf(child, number) });
      if (child === "") this.uids.set(name, made.metadata.uid);
      this.numbers.set(name, number);
    } else if (child !== "" && this.dice.chance(0.2)) {
      await this.client.delete(`${path}/${name}`);
      this.numbers.delete(name);
    } else {
      await this.client.patch(`${path}/${name}`, { metadata: { annotations }, ...dataOf(child, number) });
      this.numbers.set(name, number);
    }
  }
}

/** An owner's data also contains its number. */
const dataOf = (child: string, number: number) => (child === "" ? { data: { number: String(number) } } : {});

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
    const next = edits[kill] ?? {};
    told.killed(next);
    await writeReconciler(functions, next);
    await runtime.start();
  }
  const seconds = (performance.now() - from) / 1000;
  const stale = () => {
    const last = new Map<string, string>();
    for (const line of told.look()) {
      if (line.msg === "told") last.set(line.name, line.number);
      if (line.msg === "ends")
        for (const [index, name] of family(line.name).entries()) last.set(name, line.seen[index] ?? "");
    }
    return [...writer.numbers.keys()]
      .filter((name) => /^owner-\d+$/.test(name))
      .flatMap(family)
      .filter((name) => (last.get(name) ?? "gone") !== String(writer.numbers.get(name) ?? "gone"));
  };
  await until("every last state is reconciled", patienceMs, async () => stale().length === 0).catch(() => {});
  const { twice, runs, events, unflagged, cut, misshapen } = verdict(told.lines);
  say(`${writer.changes} changes of ${owners} owners in ${seconds.toFixed(0)} s, ${kills} kills with an edit each`);
  say(`${runs} runs, and ${events} events in mode All; ${(runs / writer.changes).toFixed(2)} runs per change`);
  say(`two runs of a key at once: ${twice}; last states not reconciled: ${stale().length}`);
  say(`runs that a kill cut off: ${cut}; not flagged when they came again: ${unflagged}`);
  say(`objects that are not what the manifest asks for: ${misshapen}`);
  return twice + stale().length + unflagged + misshapen === 0;
}

/** An owner and its children. */
const family = (owner: string) => [owner, `${owner}-x`, `${owner}-y`];

/**
 * Counts, in the order of the lines, runs that begin while another run of their key is in progress, and runs that kills
 * interrupted. Also counts runs in which an object was absent, or whose object was not complete although the manifest wants that,
 * or complete although it does not.
 */
function verdict(lines: readonly Line[]) {
  const open = new Map<string, Begins>();
  const lost = new Map<string, Begins>();
  const events = new Set<string>();
  let shape: Shape = {};
  const counts = { twice: 0, runs: 0, events: 0, unflagged: 0, cut: 0, misshapen: 0 };
  for (const line of lines) {
    if (line.msg === "killed") {
      for (const [name, run] of open) lost.set(name, run);
      counts.cut += open.size;
      open.clear();
      if (shape.mode) lost.clear();
      shape = line.next;
    } else if (line.msg === "begins") {
      counts.runs++;
      if (open.has(line.name)) counts.twice++;
      open.set(line.name, line);
      if (lost.delete(line.name) && !line.redelivered) counts.unflagged++;
    } else if (line.msg === "ends") {
      open.delete(line.name);
      const isWhole = !shape.object && line.seen[0] !== "gone";
      if (line.data !== (isWhole ? line.seen[0] : "none")) counts.misshapen++;
    } else {
      counts.events++;
      const state = `${line.name}@${line.number}`;
      const repeats = events.has(state) || lost.get(line.name)?.number === line.number;
      // The same name can be deleted more than once.
      if (repeats && line.number !== "gone" && !line.redelivered) counts.unflagged++;
      events.add(state);
    }
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
        // The wakes are spread over time, since a function's log takes 200 lines a second.
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
  // Owners may still be running after the first part.
  const isWish = (line: Line): line is Begins => line.msg === "begins" && due.has(line.name);
  const runs = () => told.look().slice(before).filter(isWish);
  const patience = wishMs + keys * spreadMs + patienceMs;
  const names = () => new Set(runs().map(({ name }) => name));
  await until("all ran again", patience, async () => names().size >= keys).catch(() => {});
  // Measured from before the object was created, because its handler had not received it yet.
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
const functions = join(folder, "functions");
const cluster = await ClusterProcess.start(folder);
await writeReconciler(functions);
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
