// npm run bench:stores: measures consecutive commits into each available store. NATS_SERVER names the nats-server.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { type Batch, emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { Nats } from "../../runtime/journal/nats/connection.ts";
import { JetstreamJournal } from "../../runtime/journal/nats/journal.ts";
import { SecretsJournal } from "../../runtime/journal/secrets/journal.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import { natsProgram } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import { ClusterProcess } from "../tools/watchfire-process.ts";
import { treeOf, usageOf } from "./process-tree.ts";

/** Number of events per commit. A busy runtime collects 64; a runtime with rare events has one. */
const events = Number(process.env.STORES_EVENTS ?? 64);
const objects = 20_000;
const commits = 3_000;
const body = Buffer.alloc(2_500, '{"metadata":{}}');

const log = { warn: () => {}, info: () => {}, error: () => {} };
const onLost = (error: Error) => {
  throw error;
};

/** A commit of events that begin and of as many that ended. Some of them contain their object's stored body. */
function batch(view: number, n: number): Batch {
  const at = (index: number) => (n * events + index) % objects;
  const version = (index: number) => resourceVersion(String(1_000_000 + n * events + index));
  const all = Array.from({ length: events }, (_, index) => index);
  return {
    ...emptyBatch,
    known: all.map((index) => ({
      view,
      key: `team-${at(index) % 50}/object-${at(index)}`,
      state: {
        uid: `8b5ad5a4-5b57-4f3c-8c3d-${String(at(index)).padStart(12, "0")}`,
        resourceVersion: version(index),
        hash: "",
        deleted: false,
        matched: true,
        body: index % 8 === 0 ? body : ("older" as const),
      },
    })),
    journal: [
      {
        id: n + 1,
        started: all.map((index) => ({
          view,
          key: `team-${at(index) % 50}/object-${at(index)}`,
          id: `8b5ad5a4-5b57-4f3c-8c3d-${String(at(index)).padStart(12, "0")}/${version(index)}/Modified`,
          resourceVersion: version(index),
          type: "Modified" as const,
          attempt: 1,
        })),
      },
    ],
    settledJournal: n > 0 ? [n] : [],
    cursors: [{ view, namespace: "", selection: "", lowWaterMark: version(0), epoch: 0, initial: false }],
  };
}

async function measure(name: string, store: Checkpoint, servers: readonly NatsServer[] = []): Promise<void> {
  const { id } = await store.openView("copy", "settings", "/ConfigMap");
  for (let n = 0; n < 300; n++) await store.commit(batch(id, n));
  const took: number[] = [];
  const before = usedBy(servers);
  const cpu = process.cpuUsage();
  const began = performance.now();
  for (let n = 300; n < 300 + commits; n++) {
    const from = performance.now();
    await store.commit(batch(id, n));
    took.push(performance.now() - from);
  }
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const after = usedBy(servers);
  await store.sync();
  took.sort((a, b) => a - b);
  const part = (share: number) => `${(took[Math.floor(took.length * share)] ?? 0).toFixed(2)} ms`;
  const rate = Math.round(commits / seconds);
  const columns = [`${rate} commits/s`, `${rate * events} events/s`, part(0.5), part(0.99), part(0.999)];
  process.stdout.write(`| ${[name, ...columns, `${Math.round((user + system) / commits)} us`].join(" | ")} |\n`);
  if (servers.length > 0) {
    const cpuUs = ((after.cpuMs - before.cpuMs) * 1_000) / commits / servers.length;
    const written = (after.written - before.written) / commits / servers.length;
    process.stdout.write(
      `  each nats-server: ${Math.round(cpuUs)} us of CPU a commit, ` +
        `${Math.round(written / 1024)} KiB to disk a commit, ` +
        `${mebibytes(after.rssBytes / servers.length)} MiB resident, ${mebibytes(after.kept / servers.length)} MiB kept\n`,
    );
  }
  await store.close(true);
}

const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** CPU time and written bytes of nats-servers so far, and their current memory and disk usage. */
function usedBy(servers: readonly NatsServer[]) {
  const used = { cpuMs: 0, rssBytes: 0, written: 0, kept: 0 };
  for (const { pid, data } of servers) {
    const { cpuMs, rssBytes } = usageOf(pid);
    used.cpuMs += cpuMs;
    used.rssBytes += rssBytes;
    for (const each of treeOf(pid)) used.written += writtenBy(each);
    for (const file of readdirSync(data, { recursive: true, encoding: "utf8" }))
      used.kept += statSync(join(data, file), { throwIfNoEntry: false })?.size ?? 0;
  }
  return used;
}

/** Bytes of a process's changed pages that the kernel writes to disk. */
function writtenBy(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1] ?? 0);
}

async function onNats(name: string, servers: readonly NatsServer[]): Promise<void> {
  try {
    await Promise.all(servers.map((server) => server.start()));
    const connect = () => Nats.connect({ servers: servers.map(({ url }) => url), name: "bench", log });
    const nats = await connect().catch(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      return connect();
    });
    await measure(
      name,
      new Checkpoint(await JetstreamJournal.open({ nats, slot: "0", clock: systemClock, log, onLost })),
      servers,
    );
    await nats.close();
  } finally {
    for (const server of servers) await server.remove();
  }
}

const folder = mkdtempSync(join(tmpdir(), "watchfire-stores-"));
process.stdout.write(
  `${events} events a commit, ${objects} objects, every eighth event with a body of 2.5 KB; ${commits} commits\n`,
);
process.stdout.write(
  "| store | commits | events | p50 | p99 | p99.9 | own CPU a commit |\n|---|---|---|---|---|---|---|\n",
);
await measure("sqlite", new Checkpoint(new SqliteJournal({ folder: join(folder, "data"), clock: systemClock })));

const cluster = await ClusterProcess.start(folder);
for (const name of checkpointSecrets("watchfire"))
  await cluster.client.post("/api/v1/namespaces/default/secrets", { metadata: { name }, type: "Opaque" });
const { transport } = await connectKubeconfig({ file: cluster.kubeconfig, environment: {} });
const fence = { lease: "bench", number: 1 };
const secrets = { transport, namespace: "default", account: "watchfire", fence, clock: systemClock, log, onLost };
await measure("kubernetes (safe after 5 s)", new Checkpoint(await SecretsJournal.open(secrets)));
await transport.close();
await cluster.stop();

if (natsProgram) {
  await onNats("nats, one server", [await NatsServer.make()]);
  await onNats("nats, three servers", await NatsServer.makeCluster());
} else process.stdout.write("NATS_SERVER names no nats-server\n");
rmSync(folder, { recursive: true, force: true });
