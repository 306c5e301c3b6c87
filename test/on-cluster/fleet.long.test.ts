// Replicas that share the functions, in separate processes on a real nats-server. They are added, removed, killed and stopped
// while another process writes. The auditor compares the cluster's history with the handlers' records.
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import { describe, expect, inject, test } from "vitest";
import { parse } from "yaml";
import type { Status } from "../../runtime/host/status.ts";
import type { RunsAnswer } from "../../runtime/observe/control-api.ts";
import { describe as inWords } from "../audit/audit.ts";
import { ReplicasFixture } from "../audit/replicas-fixture.ts";
import { total } from "../bench/histogram.ts";
import { admin, unique } from "../target/fixture.ts";
import { natsProgram } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";

const { access } = inject("shared");
const execute = promisify(execFile);
const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");
const slots = 12;
const noFault = { missed: [], unflagged: [], disordered: [], invented: [] };
/** Limit of the time after a crash until every slot runs again, in milliseconds. */
const takeoverMs = 15_000;

const running = ({ fleet }: Status) => (fleet?.slots ?? []).filter(({ state }) => state === "running").length;

async function fixture(shares: number, shards: number) {
  const nats = await NatsServer.make();
  await nats.start();
  const on = await ReplicasFixture.set(admin, access, unique("fleet"), { shares, shards });
  const start = (functions?: string, functionStatus = false) =>
    on.start("nats", { fleet: { nats: nats.url, slots }, functionStatus, ...(functions && { functions }) });
  const dispose = async () => {
    await on[Symbol.asyncDispose]();
    await nats.remove();
  };
  return { on, start, [Symbol.asyncDispose]: dispose };
}

interface Kept {
  readonly metadata: { readonly name: string };
  readonly status?: { readonly conditions: readonly { readonly status: string }[] };
}

interface Held {
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly holderIdentity: string };
}

/** Makes the cluster serve Function objects, if it does not yet. */
async function serveFunctions(): Promise<void> {
  const file = join(import.meta.dirname, "../../deploy/chart/files/functions.watchfire.dev.yaml");
  const made = await admin.reply("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    body: parse(await readFile(file, "utf8")),
  });
  expect([201, 409]).toContain(made.status);
  const served = async () => (await admin.reply("GET", "/apis/watchfire.dev/v1alpha1/functions")).status === 200;
  await until("functions are served", 20_000, served);
}

/** Milliseconds until all slots run, evenly distributed. */
async function balanced(...replicas: readonly Replica[]): Promise<number> {
  const from = performance.now();
  const counts = async () => Promise.all(replicas.map(async (each) => running(await each.status())));
  await until("the slots are balanced", 60_000, async () => {
    const found = await counts();
    return found.reduce((a, b) => a + b) === slots && Math.max(...found) - Math.min(...found) <= 1;
  });
  for (const each of replicas) await until("it is ready", 30_000, async () => (await each.read("/readyz")).ok);
  return Math.round(performance.now() - from);
}

/** Runs a command on one replica. Returns its output. */
const command = (replica: Replica, words: string) =>
  execute(process.execPath, [bin, ...words.split(" "), "--data", replica.options.data]);

// Objects that are created and deleted before a slot's first list are not delivered, so the writer starts once all replicas are
// ready.
describe.skipIf(natsProgram === undefined)("a fleet", () => {
  test("repeats nothing when replicas start and end, and flags what a killed or stopped replica makes it repeat", async () => {
    await using world = await fixture(10, 1);
    const { on, start } = world;
    const first = await start();
    await balanced(first);
    const { stdout } = await execute(process.execPath, [bin, "slots", "--data", first.options.data]);
    expect(stdout.split("\n").filter((line) => line.includes(`${first.name}  running`))).toHaveLength(slots);
    expect(stdout.match(/recorder-\d/g)?.toSorted()).toEqual(Array.from({ length: 10 }, (_, n) => `recorder-${n}`));
    await on.load(100);
    on.write(300);
    const second = await start();
    const toTwo = await balanced(first, second);
    const third = await start();
    const toThree = await balanced(first, second, third);
    second.signal("SIGTERM");
    expect(await second.ended()).toBe(0);
    const left = await balanced(first, third);
    await on.load(50);
    const planned = await on.verdict();
    expect(planned, inWords(planned)).toMatchObject({ ...noFault, flagged: 0 });
    for (const each of [first, second, third]) expect(await each.log()).not.toContain("no functions yet");
    process.stdout.write(`planned moves, balanced in ${toTwo}, ${toThree} and ${left} ms: ${inWords(planned)}\n`);

    on.write(300);
    await on.load(50);
    await third.kill();
    const killed = await balanced(first);
    expect(killed).toBeLessThan(takeoverMs);
    const fourth = await start();
    await balanced(first, fourth);
    on.write(200);
    first.signal("SIGSTOP");
    const stopped = await balanced(fourth);
    expect(stopped).toBeLessThan(takeoverMs);
    await on.load(100);
    expect(await on.wake(first)).toBe(2);
    expect(await first.log()).toContain("WF_LEASE_LOST");
    await on.load(50);
    const verdict = await on.verdict();
    expect(verdict, inWords(verdict)).toMatchObject(noFault);
    process.stdout.write(`kill -9 in ${killed} ms, SIGSTOP in ${stopped} ms: ${inWords(verdict)}\n`);
  }, 300_000);

  test("goes on without a move, an end or a repeat where its Leases are deleted under load", async () => {
    await using world = await fixture(10, 1);
    const { on, start } = world;
    const [first, second] = [await start(), await start()];
    await balanced(first, second);
    await on.load(50);
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases`;
    const there = async () => {
      const { items } = await admin.get(leases, { labelSelector: "watchfire.dev/fleet" });
      return items.map(({ metadata, spec }: Held) => `${metadata.name} ${spec?.holderIdentity}`).toSorted();
    };
    const before = await there();
    expect(before).toHaveLength(slots + 2);
    on.write(300);
    const names = before.map((line) => line.split(" ")[0] ?? "");
    for (const name of [...names.filter((name) => name.includes("-replica-")), ...names.slice(-2)]) {
      await admin.delete(`${leases}/${name}`);
      await until("it is there again", 10_000, async () => isDeepStrictEqual(await there(), before));
    }
    for (const name of names) await admin.delete(`${leases}/${name}`);
    await until("all are there again", 10_000, async () => isDeepStrictEqual(await there(), before));
    await balanced(first, second);
    await on.load(50);
    const verdict = await on.verdict();
    expect(verdict, inWords(verdict)).toMatchObject({ ...noFault, flagged: 0 });
    for (const each of [first, second]) {
      each.signal("SIGTERM");
      expect(await each.ended()).toBe(0);
      expect(await each.log()).toContain("was deleted, created again");
    }
  }, 300_000);

  test("spreads one function over replicas: each object is told in one shard, also as shards move and a replica is killed", async () => {
    await using world = await fixture(1, 8);
    const { on, start } = world;
    const first = await start();
    await balanced(first);
    const { fleet } = await first.status();
    expect(fleet?.slots.filter(({ functions }) => functions.includes("recorder"))).toHaveLength(8);
    const second = await start();
    await balanced(first, second);
    await on.load(100);
    for (const each of [first, second]) {
      await until("it is ready, and was told of an object", 30_000, async () => {
        const [recorder, ...others] = (await each.status()).functions;
        return recorder?.ready && recorder.lastEvent !== undefined && others.length === 0;
      });
    }
    const asked = await command(first, "runs recorder -o json");
    expect(asked.stderr).toMatch(/^this does not cover all shards: slots [\d, ]+ are with \S+\n$/);
    const letters = await command(first, "dead-letters list");
    expect(letters.stderr).toMatch(
      /^6 of 12 slots are here; `watchfire slots` says who has the others' dead letters\n$/,
    );
    const { runs } = JSON.parse(asked.stdout) as RunsAnswer;
    const explained = (by: Replica, object = "") => command(by, `explain recorder ${object}`);
    for (const object of new Set(runs.slice(0, 10).map((run) => run.object))) {
      expect((await explained(first, object)).stdout).toContain("why: it did fire");
      expect((await explained(second, object)).stdout).toMatch(/why: .* another shard .*: slots [\d, ]+ are with /);
    }

    on.write(200);
    const third = await start();
    await balanced(first, second, third);
    await on.load(50);
    const planned = await on.verdict();
    expect(planned, inWords(planned)).toMatchObject({ ...noFault, flagged: 0 });

    on.write(200);
    await on.load(50);
    await third.kill();
    await balanced(first, second);
    await on.load(50);
    const verdict = await on.verdict();
    expect(verdict, inWords(verdict)).toMatchObject(noFault);
    process.stdout.write(`8 shards of one function: ${inWords(verdict)}\n`);
  }, 300_000);

  test("keeps an object of each function, of all its shards, and takes it away with the function, whoever has which slot", async () => {
    await using world = await fixture(3, 1);
    const { on } = world;
    await serveFunctions();
    const objects = `/apis/watchfire.dev/v1alpha1/namespaces/${on.namespace}/functions`;
    const functions = await mkdtemp(join(tmpdir(), "watchfire-kept-"));
    await cp(await on.inShards(1), functions, { recursive: true });
    await cp(join(await on.inShards(4), "recorder-1"), join(functions, "recorder-1"), { recursive: true });
    const start = () => world.start(functions, true);
    const kept = async () => {
      const { items } = await admin.get(objects);
      return items.map(({ metadata, status }: Kept) => {
        const [ready] = status?.conditions ?? [];
        return `${metadata.name} ${ready?.status}`;
      });
    };
    const all = ["recorder-0 True", "recorder-1 True", "recorder-2 True"];
    const [first, second] = [await start(), await start()];
    await balanced(first, second);
    await until("each is kept", 60_000, async () => isDeepStrictEqual(await kept(), all));
    await on.load(50);
    await until("all deliveries are told", 60_000, async () => {
      const told = await Promise.all([first, second].map(async (each) => (await each.status()).functions));
      const lasts = told
        .flat()
        .flatMap(({ name, lastEvent }) => (name === "recorder-1" && lastEvent ? [lastEvent] : []));
      return lasts.toSorted().at(-1) === (await admin.get(`${objects}/recorder-1`)).status.lastEvent;
    });
    await second.kill();
    await balanced(first);
    await until("no part of the other is left", 60_000, async () => {
      const { status } = await admin.get(`${objects}/recorder-1`);
      return Object.keys(status.shares ?? {}).length === 0 && isDeepStrictEqual(await kept(), all);
    });
    const fewer = `${functions}-fewer`;
    await cp(functions, fewer, { recursive: true });
    await rm(join(fewer, "recorder-2"), { recursive: true });
    first.signal("SIGTERM");
    expect(await first.ended()).toBe(0);
    await balanced(await world.start(fewer, true));
    await until("it went with its function", 60_000, async () => isDeepStrictEqual(await kept(), all.slice(0, 2)));
    for (const each of [functions, fewer]) await rm(each, { recursive: true });
  }, 300_000);

  test("tells of a dead letter by an id that its commands take, in the log, in the list and to explain", async () => {
    await using world = await fixture(1, 1);
    const { on } = world;
    const functions = await mkdtemp(join(tmpdir(), "watchfire-fails-"));
    await mkdir(join(functions, "fails"));
    const watch = `{ apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [${on.namespace}] }, fieldSelector: metadata.name=news }`;
    const head = "apiVersion: watchfire.dev/v1alpha1\nkind: Function\nmetadata: { name: fails }";
    const spec = `spec:\n  handler: ./handler.ts\n  triggers: [{ name: settings, watch: ${watch} }]\n  delivery: { retry: { maxAttempts: 1 } }`;
    await writeFile(join(functions, "fails/function.yaml"), `${head}\n${spec}\n`);
    await writeFile(join(functions, "fails/handler.ts"), `export default async () => { throw new Error("no"); };\n`);
    const replica = await world.start(functions);
    await balanced(replica);
    await admin.post(`/api/v1/namespaces/${on.namespace}/configmaps`, { metadata: { name: "news" } });
    const way = /"replay":"watchfire (dead-letters replay (\d+-1)) --data [^"]+"/;
    await until("the log tells of it", 30_000, async () => way.test(await replica.log()));
    const [, replay = "", id = ""] = way.exec(await replica.log()) ?? [];
    const { fleet } = await replica.status();
    expect(fleet?.slots.find(({ functions: [name] }) => name === "fails")?.slot).toBe(Number(id.split("-")[0]));
    const says = async (words: string) => {
      const { stdout, stderr } = await command(replica, words);
      expect(stderr).toBe("");
      return stdout;
    };
    expect(await says("dead-letters list")).toMatch(new RegExp(`^${id} +fails `, "m"));
    expect(await says(`explain fails ${on.namespace}/news`)).toContain(`dead-letters show ${id}`);
    expect(await says(replay)).toBe("replayed 1\n");
    await rm(functions, { recursive: true });
  }, 120_000);

  test("watches each namespace once where a function is spread by namespace, also after a kill", async () => {
    await using world = await fixture(1, 1);
    const { start } = world;
    const namespaces = Array.from({ length: 10 }, () => unique("tenant"));
    for (const name of namespaces) await admin.post("/api/v1/namespaces", { metadata: { name } });
    const functions = await mkdtemp(join(tmpdir(), "watchfire-tenants-"));
    await mkdir(join(functions, "tenants"));
    const delivery = "{ shards: 8, shardBy: Namespace }";
    const watch = `{ apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [${namespaces}] }, fieldSelector: metadata.name=news }`;
    const head = "apiVersion: watchfire.dev/v1alpha1\nkind: Function\nmetadata: { name: tenants }";
    const spec = `spec:\n  handler: ./handler.ts\n  triggers: [{ name: settings, watch: ${watch} }]\n  delivery: ${delivery}`;
    await writeFile(join(functions, "tenants/function.yaml"), `${head}\n${spec}\n`);
    await writeFile(join(functions, "tenants/handler.ts"), "export default async () => {};\n");
    const watched = async (...by: readonly Replica[]) => {
      const all = await Promise.all(by.map(async (each) => (await each.status()).sources));
      const found = all.flat().filter(({ kind }) => kind === "ConfigMap");
      return found.map(({ namespace }) => namespace).toSorted();
    };
    const [first, second] = [await start(functions), await start(functions)];
    await balanced(first, second);
    expect((await watched(first)).length).toBeLessThan(namespaces.length);
    expect(await watched(first, second)).toEqual(namespaces.toSorted());
    const told = async (...by: readonly Replica[]) => {
      const pages = await Promise.all(by.map(async (each) => (await each.read("/metrics")).text()));
      return pages.reduce((sum, page) => sum + total(page, "watchfire_handler_duration_seconds_count"), 0);
    };
    const news = (value: string) => ({ metadata: { name: "news" }, data: { value } });
    for (const each of namespaces) await admin.post(`/api/v1/namespaces/${each}/configmaps`, news("1"));
    await until("each is told once", 30_000, async () => (await told(first, second)) >= namespaces.length);
    expect(await told(first, second)).toBe(namespaces.length);
    await second.kill();
    await balanced(first);
    await until("the other's are watched", 30_000, async () => (await watched(first)).length >= namespaces.length);
    expect(await watched(first)).toEqual(namespaces.toSorted());
    const before = await told(first);
    for (const each of namespaces) await admin.put(`/api/v1/namespaces/${each}/configmaps/news`, news("2"));
    await until(
      "each is told by the one that is left",
      30_000,
      async () => (await told(first)) >= before + namespaces.length,
    );
    await rm(functions, { recursive: true });
  }, 300_000);
});
