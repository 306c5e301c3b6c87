// Runtimes of two clusters with the same namespace and account, on one NATS: their streams have the same names.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { Nats } from "../../runtime/journal/nats/connection.ts";
import { JetstreamLog } from "../../runtime/journal/nats/log.ts";
import { slotsOn } from "../../runtime/journal/nats/sweep.ts";
import { natsProgram } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { startNats } from "../tools/nats.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";

const root = join(import.meta.dirname, "../..");
const bin = join(root, "runtime/bin/watchfire.js");
const functions = join(root, "test/audit/functions");
const execute = promisify(execFile);

/** A cluster with the namespaces that the functions use. */
async function startCluster(): Promise<ClusterProcess> {
  const cluster = await ClusterProcess.start(folderOf({}));
  onTestFinished(() => cluster.stop());
  for (const name of ["audit", "audit-records"])
    await cluster.client.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  return cluster;
}

/** The process that has opened each slot on NATS. */
async function openers(url: string): Promise<string[]> {
  const log = { warn: () => {}, info: () => {} };
  const nats = await Nats.connect({ servers: [url], name: "default_watchfire", log });
  const slots = (await slotsOn(nats)).toSorted();
  const lasts = await Promise.all(slots.map((slot) => new JetstreamLog(nats, systemClock, slot).read()));
  await nats.close();
  return slots.map((slot, index) => `${slot} ${lasts[index]?.note.session}`);
}

test.skipIf(!natsProgram).each([
  ["a fleet", ["--slots", "4"]],
  ["a runtime alone", []],
])(
  "%s goes on without an interruption, its positions untouched, while every runtime of another cluster is refused",
  async (_, own) => {
    const server = await startNats();
    const [ours, theirs] = [await startCluster(), await startCluster()];
    const on = ["--nats", server.url, "--namespace", "default"];
    const first = new RuntimeProcess(folderOf({}), ours.kubeconfig, functions, ["--store", "nats", ...own, ...on]);
    await first.start();
    onTestFinished(() => first.kill());
    const make = (name: string) => ours.client.post("/api/v1/namespaces/audit/configmaps", { metadata: { name } });
    const told = async (): Promise<string[]> => {
      const { items } = await ours.client.get("/api/v1/namespaces/audit-records/configmaps");
      const records = items as { data?: { name?: string; redelivered?: string } }[];
      return records.flatMap(({ data }) => (data?.name ? [`${data.name} ${data.redelivered}`] : [])).sort();
    };
    await make("before");
    await until("it works", 30_000, async () => (await told()).length === 1);
    const before = await openers(server.url);

    const data = folderOf({});
    // After the first of these, the other's Lease says that a fleet has its checkpoints.
    for (const way of [["nats", "--slots", "4"], ["nats"], ["nats", "--slots", "2"], ["sqlite"], ["nats"]]) {
      const [store = "", ...more] = way;
      const options = ["--functions", functions, "--data", data, "--kubeconfig", theirs.kubeconfig];
      const args = [bin, "start", ...options, "--listen", "127.0.0.1:0", "--store", store, ...more, ...on];
      const ended = await execute(process.execPath, args, { timeout: 45_000 }).catch((error) => error);
      expect([ended.code, ended.stdout + ended.stderr], way.join(" ")).toEqual([
        1,
        expect.stringContaining("WF_CHECKPOINT_OTHER_CLUSTER"),
      ]);
    }

    expect(await openers(server.url)).toEqual(before);
    await make("after");
    await until("it goes on", 30_000, async () => (await told()).length === 2);
    expect(await told()).toEqual(["after false", "before false"]);
    expect(readFileSync(first.logFile, "utf8")).not.toMatch(/WF_CHECKPOINT|WF_LEASE/);
  },
  240_000,
);
