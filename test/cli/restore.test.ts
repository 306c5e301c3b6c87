// A backup of a folder that is restored into Secrets, on a cluster, also after an interruption.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { readBackup } from "../../runtime/journal/sqlite/backup-file.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { admin, cluster } from "../scenarios/cluster.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { watchfire } from "./run.ts";

// Each test runs the command line as a process.
vi.setConfig({ testTimeout: 60_000 });

const namespace = "restores";
const lease = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/watchfire`;
const positions = "watchfire.dev/positions";
let folder: string;
let options: string[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "watchfire-restore-"));
  const file = join(folder, "kubeconfig");
  const { url, caCertificate: ca, adminToken: token } = cluster;
  await writeFile(file, kubeconfigOf({ url, ca, token }, namespace));
  await admin.post("/api/v1/namespaces", { metadata: { name: namespace } });
  for (const name of checkpointSecrets("watchfire"))
    await admin.post(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: "Opaque" });
  options = ["--store", "kubernetes", "--kubeconfig", file, "--namespace", namespace];
  return () => rm(folder, { recursive: true, force: true });
});

test("a backup of a folder is restored into Secrets, the next restore ends an interrupted one, and a backup of them has it all", async () => {
  const data = join(folder, "data");
  const store = new Checkpoint(new SqliteJournal({ folder: data }));
  await store.openView("copy", "settings", "/ConfigMap");
  await store.close(true);
  const backup = join(folder, "backup.db");
  expect((await watchfire(["backup", "--data", data, "--to", backup])).status).toBe(0);
  const empty = await watchfire(["backup", "--to", join(folder, "none.db"), ...options]);
  expect([empty.status, empty.stderr]).toEqual([1, expect.stringMatching(/^WF_CHECKPOINT_MISSING/)]);

  const first = await watchfire(["restore", "--from", backup, ...options]);
  expect([first.status, first.stdout]).toEqual([0, expect.stringMatching(/^restored 1 function .*: copy\n/)]);
  const { metadata, spec } = await admin.get(lease);
  expect([metadata.annotations?.[positions], spec.holderIdentity ?? ""]).toEqual(["kubernetes", ""]);

  const interrupted = { ...metadata.annotations, [positions]: "sqlite/restored-backup" };
  await admin.put(lease, { ...(await admin.get(lease)), metadata: { ...metadata, annotations: interrupted } });
  expect((await watchfire(["restore", "--from", backup, ...options])).status).toBe(0);
  expect((await admin.get(lease)).metadata.annotations?.[positions]).toBe("kubernetes");

  const again = join(folder, "again.db");
  expect((await watchfire(["backup", "--to", again, ...options])).status).toBe(0);
  const { note, state } = readBackup(again);
  expect([note.place, [...state.views.values()].map((view) => view.function)]).toEqual(["kubernetes", ["copy"]]);
});

test("checkpoints on a volume that is not here are replaced only when that is asked for", async () => {
  const current = await admin.get(lease);
  const annotations = { ...current.metadata.annotations, [positions]: "sqlite/watchfire-0" };
  await admin.put(lease, { ...current, metadata: { ...current.metadata, annotations } });
  const of = ["restore", "--from", join(folder, "backup.db"), ...options];
  const refused = await watchfire(of);
  expect([refused.status, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/^WF_RESTORE_UNCOMPARED.*volume of watchfire-0/),
  ]);
  expect((await watchfire([...of, "--yes"])).status).toBe(0);
});
