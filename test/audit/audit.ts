import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../target/client.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";
import { asInFile, type Edit, edits, type Shape, selections, wantedBy } from "./edits.ts";
import { type Fact, namespaces, type Records, readFacts, recordsIn, revision, written } from "./ledger.ts";
import { writeRecorders } from "./recorders.ts";
import { type Course, type Gap, judge, type Verdict } from "./verdict.ts";
import { Writer } from "./writer-process.ts";

export interface AuditPlan {
  /** ConfigMaps that the writer works on. */
  readonly objects: number;
  /** Creations, changes and deletions in each of the two parts; the first `objects` of the first part are creations. */
  readonly operations: number;
  /** SIGKILLs in each part. */
  readonly kills: number;
  readonly seed: number;
  /** More of the runtime's command line. */
  readonly options?: readonly string[];
  readonly say: (line: string) => void;
}

/** A running audit. */
interface Run {
  readonly plan: AuditPlan;
  readonly client: Client;
  readonly runtime: RuntimeProcess;
  readonly writer: Writer;
  /** The functions folder. */
  readonly functions: string;
  readonly facts: Fact[];
  readonly gaps: Gap[];
  readonly edits: Edit[];
}

/**
 * Kills the runtime with SIGKILL while another process writes, and edits the manifest while it is down. First the cluster's
 * history stays whole, then all of it is compacted. It then compares the cluster's history with the records that the handler
 * wrote into the cluster. It ends with the first verdict that has a fault.
 */
export async function audit(plan: AuditPlan): Promise<{ whole: Verdict; compacted: Verdict }> {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-audit-"));
  const cluster = await ClusterProcess.start(folder);
  const functions = join(folder, "functions");
  await writeRecorders(functions, namespaces, {});
  const runtime = new RuntimeProcess(folder, cluster.kubeconfig, functions, plan.options);
  const writer = new Writer(cluster.kubeconfig, plan.objects, plan.seed);
  let kept = true;
  try {
    const { client } = cluster;
    for (const name of Object.values(namespaces)) {
      await client.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    }
    const run: Run = { plan, client, runtime, writer, functions, facts: [], gaps: [], edits: [] };
    const began = await revision(client);
    await runtime.start();
    plan.say("part 1: killed and edited again and again, the history whole");
    const whole = await killWhileWriting(run, began);
    plan.say(`  ${describe(whole)}`);

    if (isFaultless(whole)) plan.say("part 2: killed and edited, and the history compacted while it is down");
    let compacted = whole;
    for (let kill = 1; kill <= plan.kills && isFaultless(compacted); kill++) {
      compacted = await killAndCompact(run, nth(selections, kill));
      plan.say(`  kill ${kill} of ${plan.kills}: ${describe(compacted)}`);
    }
    kept = isFaultless(whole) && isFaultless(compacted);
    return { whole, compacted };
  } catch (error) {
    kept = false;
    throw error;
  } finally {
    writer.stop();
    await runtime.kill();
    await cluster.stop();
    if (kept) await rm(folder, { recursive: true, force: true });
    else plan.say(`logs and data are kept in ${folder}`);
  }
}

/** The shape for the nth kill; after the last shape it starts again with the first. */
const nth = (shapes: readonly [Shape, ...Shape[]], kill: number): Shape =>
  shapes[(kill - 1) % shapes.length] ?? shapes[0];

const verdictOn = ({ client, facts, gaps, edits }: Run) => settled(recordsIn(client), facts, { gaps, edits });

/** Each kill happens during writing, when some of the changes are delivered and others are not. */
async function killWhileWriting(run: Run, began: number): Promise<Verdict> {
  const { plan, client, runtime, writer, functions, facts } = run;
  const stretch = Math.floor(plan.operations / (plan.kills + 1));
  const half = Math.floor(stretch / 2);
  let read = began;
  const judged = async () => {
    await writer.left(0);
    facts.push(...(await readFacts(client, read)));
    read = facts.at(-1)?.resourceVersion ?? read;
    return verdictOn(run);
  };
  for (let kill = 1; kill <= plan.kills; kill++) {
    writer.allow(half);
    const verdict = await judged();
    if (!isFaultless(verdict)) return verdict;
    const from = await revision(client);
    const before = await written(client);
    writer.allow(stretch - half);
    await until("the handler records", 60_000, async () => (await written(client)) > before);
    await runtime.kill();
    plan.say(`  kill ${kill} of ${plan.kills}: ${await written(client)} deliveries written`);
    const shape = kill === plan.kills ? asInFile : nth(edits, kill);
    await writeRecorders(functions, namespaces, {}, shape);
    await runtime.start();
    run.edits.push({ from, to: await revision(client), wanted: wantedBy(shape) });
  }
  writer.allow(plan.operations - stretch * plan.kills);
  return judged();
}

/**
 * One kill during writing. Writing continues while the runtime is down, before and after the compaction, and while the runtime
 * starts
 * again with an edited manifest. Another kill follows while it catches up. All that happens meanwhile counts as one gap, because
 * only the runtime knows how far its list reached. After the gap is bridged, writing continues, and each change counts again.
 */
async function killAndCompact(run: Run, shape: Shape): Promise<Verdict> {
  const { plan, client, runtime, writer, facts } = run;
  const from = await revision(client);
  const stretch = Math.floor(plan.operations / (5 * plan.kills));
  const before = await written(client);
  writer.allow(stretch);
  await until("the handler records", 60_000, async () => (await written(client)) > before);
  await runtime.kill();
  writer.allow(stretch);
  await writer.left(0);
  facts.push(...(await readFacts(client, from)));
  const compactedTo = await revision(client);
  await client.post("/watchfire.dev/compact", {});

  await writeRecorders(run.functions, namespaces, {}, shape);
  writer.allow(stretch * 2);
  await writer.left(stretch);
  await runtime.start();
  const bridging = await written(client);
  await until("the handler records what was missed", 60_000, async () => (await written(client)) > bridging);
  await runtime.kill();
  await runtime.start();
  await writer.left(0);
  facts.push(...(await readFacts(client, compactedTo)));
  const to = await revision(client);
  run.gaps.push({ from, to });
  run.edits.push({ from, to, wanted: wantedBy(shape) });
  const verdict = await verdictOn(run);
  if (!isFaultless(verdict)) return verdict;

  const bridged = await revision(client);
  writer.allow(stretch);
  await writer.left(0);
  facts.push(...(await readFacts(client, bridged)));
  return verdictOn(run);
}

/** If nothing new arrives for this long, late deliveries such as duplicates have arrived. Milliseconds. */
const quietMs = 1000;
/** If the runtime delivers nothing for this long, the remaining changes count as missed. Milliseconds. */
const patienceMs = 60_000;

/** Interval in which deliveries are read, in milliseconds; there may be thousands of them. */
const settlePollMs = 200;

/** The verdict once nothing is missing, or once the runtime stops delivering. */
export async function settled(records: Records, facts: readonly Fact[], course: Course): Promise<Verdict> {
  let count = -1;
  let changedAt = performance.now();
  return until(
    "the runtime catches up",
    300_000,
    async () => {
      const now = await records.written();
      if (now !== count) {
        count = now;
        changedAt = performance.now();
        return undefined;
      }
      const quietFor = performance.now() - changedAt;
      if (quietFor < quietMs) return undefined;
      const deliveries = await records.deliveries();
      const current = judge(facts, deliveries, course);
      return (current.missed.length === 0 || quietFor > patienceMs) && current;
    },
    settlePollMs,
  );
}

/** The verdict in a line, and the first faults of each kind below it. */
export function describe(verdict: Verdict): string {
  const { missed, unflagged, disordered, invented, unwanted } = verdict;
  const faults = Object.entries({ missed, "not flagged": unflagged, "out of order": disordered, invented, unwanted });
  const counts = faults.map(([kind, list]) => `${list.length} ${kind}`).join(", ");
  const examples = faults.flatMap(([kind, list]) => list.slice(0, 10).map((line) => `\n    ${kind}: ${line}`));
  const { facts, deliveries, flagged, synthetic, reselected, amidWriting } = verdict;
  const edited = reselected === 0 ? "" : `, ${reselected} selected or let go`;
  const kinds = `${flagged} flagged, ${synthetic} synthetic${edited}${amidWriting === 0 ? "" : `, ${amidWriting} amid writing`}`;
  return `${facts} changes, ${deliveries} deliveries, ${kinds}: ${counts}${examples.join("")}`;
}

export function isFaultless({ missed, unflagged, disordered, invented, unwanted }: Verdict): boolean {
  return missed.length + unflagged.length + disordered.length + invented.length + unwanted.length === 0;
}
