// Two runtimes as processes of their own, killed, stopped and started again, while another process writes; the auditor
// then compares the cluster's history with what handlers wrote down.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { checkpointSecrets } from "../../runtime/checkpoint/kubernetes-names.ts";
import { describe as inWords, settled, written } from "../audit/audit.ts";
import { namespaces, readDeliveries, readFacts, revision } from "../audit/ledger.ts";
import type { Verdict } from "../audit/verdict.ts";
import { Writer } from "../audit/writer-process.ts";
import { Replica, type ReplicaOptions } from "../tools/replica.ts";
import { until } from "../tools/until.ts";
import { admin, createNamespace, gone } from "./fixture.ts";
import { kubeconfigOf } from "./kubeconfig.ts";

const { access } = inject("shared");
const functions = join(import.meta.dirname, "../audit/functions");
const noFault = { missed: [], unflagged: [], disordered: [], invented: [] };
/** What takeover may take in all, in milliseconds. */
const takeoverMs = 15_000;
/** How often the store in Secrets writes, in milliseconds. */
const writtenEveryMs = 5_000;

let folder: string;
let namespace: string;
let kubeconfig: string;
let writer: Writer;
let began: number;
const replicas: Replica[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "watchfire-replicas-"));
  kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, kubeconfigOf(access), { mode: 0o600 });
  namespace = await createNamespace();
  for (const name of checkpointSecrets("watchfire")) {
    await admin.post(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: "Opaque" });
  }
  for (const name of Object.values(namespaces)) await admin.post("/api/v1/namespaces", { metadata: { name } });
  began = await revision(admin);
  writer = new Writer(kubeconfig, 60, 20261121);
}, 60_000);

afterEach(async () => {
  writer.stop();
  await Promise.all(replicas.splice(0).map((each) => each.kill()));
  for (const name of Object.values(namespaces)) {
    await admin.reply("DELETE", `/api/v1/namespaces/${name}`);
    await gone(`/api/v1/namespaces/${name}`);
  }
  await rm(folder, { recursive: true, force: true });
}, 120_000);

let uids = 0;
async function start(
  pod: string,
  store: "sqlite" | "kubernetes",
  over: Partial<ReplicaOptions> = {},
): Promise<Replica> {
  const replica = await Replica.start({
    kubeconfig,
    namespace,
    functions,
    data: join(folder, pod),
    pod,
    uid: `uid-${++uids}`,
    store,
    logFile: join(folder, `${pod}.log`),
    ...over,
  });
  replicas.push(replica);
  return replica;
}

/** Milliseconds until it says that it is active. */
async function takesOver(replica: Replica): Promise<number> {
  const from = performance.now();
  await until(`${replica.name} is active`, 40_000, () => replica.isActive());
  return performance.now() - from;
}

/** Lets the writer do so many operations, and waits until half of what they bring is delivered. */
async function load(operations: number): Promise<void> {
  const before = await written(admin);
  writer.allow(operations);
  await until("handlers record", 60_000, async () => (await written(admin)) > before + operations / 2);
}

/** What there is so far, for the record. */
async function note(what: string): Promise<void> {
  const all = await readDeliveries(admin);
  process.stdout.write(`${what}: ${all.length} deliveries, ${all.filter(({ flagged }) => flagged).length} flagged\n`);
}

async function verdict(): Promise<Verdict> {
  await writer.left(0);
  const facts = await readFacts(admin, began);
  const found = await settled(admin, facts, []);
  expect(found, inWords(found)).toMatchObject(noFault);
  return found;
}

describe("two replicas on one store", () => {
  test("miss nothing and repeat nothing unflagged when the active one is killed, stopped and told to end", async () => {
    const [first, second] = [await start("watchfire-0", "kubernetes"), await start("watchfire-1", "kubernetes")];
    await takesOver(first);
    await until("the standby is ready", 20_000, async () => (await second.read("/readyz")).ok);
    const standby = await second.status();
    expect(standby).toMatchObject({ role: "standby", lease: { holder: first.name } });
    expect(standby.functions.map(({ reason }) => reason)).toEqual(["Standby"]);
    expect(standby.sources.map(({ state }) => state)).toEqual(["standby"]);
    expect((await second.read("/livez")).ok).toBe(true);
    expect(await (await second.read("/metrics")).text()).toContain("watchfire_leader 0");
    expect(await (await first.read("/metrics")).text()).toContain("watchfire_leader 1");

    await load(300);
    await note("before the kill");
    writer.allow(100);
    await first.kill();
    const takeover = await takesOver(second);
    expect(takeover).toBeLessThan(takeoverMs);
    await load(100);

    await note("before the stop");
    const third = await start("watchfire-0", "kubernetes");
    await until("it stands by", 20_000, async () => (await third.status()).lease?.holder === second.name);
    writer.allow(100);
    second.signal("SIGSTOP");
    const afterStop = await takesOver(third);
    expect(afterStop).toBeLessThan(takeoverMs);
    await load(200);
    second.signal("SIGCONT");
    expect(await second.ended()).toBe(2);
    expect(await second.log()).toContain("WF_LEASE_LOST");

    await note("before the end");
    const fourth = await start("watchfire-1", "kubernetes");
    await until("it stands by", 20_000, async () => (await fourth.status()).lease?.holder === third.name);
    writer.allow(100);
    third.signal("SIGTERM");
    expect(await third.ended()).toBe(0);
    expect(await takesOver(fourth)).toBeLessThan(3_000);
    await load(100);
    const { facts, flagged } = await verdict();
    const timing = `takeover after kill -9 ${Math.round(takeover)} ms, after SIGSTOP ${Math.round(afterStop)} ms`;
    process.stdout.write(`${timing}; ${facts} changes, ${flagged} deliveries flagged\n`);
  }, 240_000);

  test("a kill repeats nothing that was on record", async () => {
    const secret = `/api/v1/namespaces/${namespace}/secrets/watchfire-checkpoint-0`;
    const recorded = async () => (await admin.get(secret)).metadata.resourceVersion;
    const first = await start("watchfire-0", "kubernetes");
    await takesOver(first);
    await load(200);
    await writer.left(0);
    await until("all is handled", 60_000, async () => {
      const { functions } = await first.status();
      return (await written(admin)) >= 200 && functions.every(({ queued, inFlight }) => queued + inFlight === 0);
    });
    let [version, since] = [await recorded(), performance.now()];
    await until("nothing is left to be put on record", 30_000, async () => {
      const now = await recorded();
      if (now !== version) [version, since] = [now, performance.now()];
      return performance.now() - since > writtenEveryMs + 1_000;
    });
    const onRecord = await revision(admin);
    await first.kill();
    const second = await start("watchfire-1", "kubernetes");
    await takesOver(second);
    await load(50);
    await verdict();
    const repeated = (await readDeliveries(admin)).filter((each) => each.flagged && each.resourceVersion <= onRecord);
    expect(repeated).toEqual([]);
  }, 120_000);

  test("a pod that is made again waits for the volume while the process before it still holds it", async () => {
    const data = join(folder, "volume");
    const first = await start("watchfire-0", "sqlite", { data });
    await takesOver(first);
    await load(150);
    first.signal("SIGSTOP");
    const second = await start("watchfire-0", "sqlite", { data });
    await until("it waits for the folder", 40_000, async () => (await second.log()).includes("WF_CHECKPOINT_LOCKED"));
    expect((await second.status()).role).toBe("standby");
    writer.allow(50);
    await first.kill();
    await takesOver(second);
    await load(100);
    await verdict();
  }, 120_000);

  test("carry positions over from a volume to Secrets and back, and nothing comes twice", async () => {
    const lease = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/watchfire`;
    const place = async () => (await admin.get(lease)).metadata.annotations?.["watchfire.dev/positions"];
    const alone = await start("watchfire-0", "sqlite");
    await takesOver(alone);
    await load(150);
    await writer.left(0);
    expect(await place()).toBe("sqlite/watchfire-0");

    const other = await start("watchfire-1", "kubernetes");
    alone.signal("SIGTERM");
    expect(await alone.ended()).toBe(0);
    await until("it says what it waits for", 20_000, async () =>
      (await other.status()).lease?.obstacle?.includes("watchfire-0"),
    );
    const upgraded = await start("watchfire-0", "kubernetes");
    await takesOver(upgraded);
    expect([await place(), (await other.status()).role]).toEqual(["kubernetes", "standby"]);
    await load(100);
    await writer.left(0);

    for (const each of [other, upgraded]) {
      each.signal("SIGTERM");
      expect(await each.ended()).toBe(0);
    }
    const back = await start("watchfire-0", "sqlite");
    await takesOver(back);
    expect(await place()).toBe("sqlite/watchfire-0");
    await load(100);
    expect((await verdict()).flagged).toBe(0);

    back.signal("SIGTERM");
    await back.ended();
    await admin.patch(lease, { metadata: { annotations: { "watchfire.dev/positions": null } } });
    const astray = await start("watchfire-1", "kubernetes");
    expect(await astray.ended()).toBe(1);
    expect(await astray.log()).toContain("WF_CHECKPOINT_ELSEWHERE");
  }, 180_000);
});
