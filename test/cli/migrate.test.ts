// Checkpoints that the command moves, on a cluster, and what it says where it cannot.
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { admin, cluster } from "../scenarios/cluster.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { watchfire } from "./run.ts";

// Each test runs the command line as a process.
vi.setConfig({ testTimeout: 60_000 });

const namespace = "moves";
let folder: string;
let options: string[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "watchfire-migrate-"));
  const file = join(folder, "kubeconfig");
  const { url, caCertificate: ca, adminToken: token } = cluster;
  await writeFile(file, kubeconfigOf({ url, ca, token }, namespace));
  await admin.post("/api/v1/namespaces", { metadata: { name: namespace } });
  for (const name of checkpointSecrets("watchfire"))
    await admin.post(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: "Opaque" });
  options = ["--kubeconfig", file, "--namespace", namespace, "--data", join(folder, "data"), "--pod", "web-0"];
  return () => rm(folder, { recursive: true, force: true });
});

test("migrate moves the checkpoints of a data folder to Secrets and back, and says so", async () => {
  const open = () => new Checkpoint(new SqliteJournal({ folder: join(folder, "data") }));
  const before = open();
  await before.openView("copy", "settings", "/ConfigMap");
  await before.close(true);
  const moved = await watchfire(["migrate", "--store", "kubernetes", ...options]);
  expect([moved.status, moved.stderr]).toEqual([0, ""]);
  expect(moved.stdout).toMatch(/"from":"sqlite\/web-0","to":"kubernetes","functions":1,"msg":"checkpoints moved"/);
  expect(await readdir(join(folder, "data"))).not.toContain("checkpoint.db");
  const again = await watchfire(["migrate", "--store", "kubernetes", ...options]);
  expect([again.status, again.stdout.includes("checkpoints moved")]).toEqual([0, false]);
  expect((await watchfire(["migrate", ...options])).stdout).toContain('"to":"sqlite/web-0"');
  const after = open();
  expect([(await after.views()).map((view) => view.function), after.previousEnd]).toEqual([["copy"], "clean"]);
  await after.close(true);
});

test("migrate to NATS says that it needs to know which", async () => {
  const { status, stderr } = await watchfire(["migrate", "--store", "nats", ...options]);
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_CLI_USAGE: --store nats needs --nats URL/)]);
});
