// An older backup is restored into each store, under load.
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import type { Access } from "../target/client.ts";
import { Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { startTarget } from "../target/target.ts";
import { natsProgram } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { startNats } from "../tools/nats.ts";
import { describe } from "./audit.ts";
import { ReplicasFixture } from "./replicas-fixture.ts";
import { type DrilledStore, drill } from "./restore.ts";

vi.setConfig({ testTimeout: 300_000 });

let access: Access;
let admin: Client;
beforeAll(async () => {
  const target = await startTarget("embedded");
  access = target.access;
  admin = new Client(access);
  return async () => {
    await admin.close();
    await target.close();
  };
});

const noFault = { missed: [], unflagged: [], disordered: [], invented: [], unwanted: [] };

async function drilled(namespace: string, store: DrilledStore): Promise<void> {
  await using on = await ReplicasFixture.set(admin, access, namespace, { objects: 60 });
  const kubeconfig = join(folderOf({}), "kubeconfig");
  await writeFile(kubeconfig, kubeconfigOf(access), { mode: 0o600 });
  const { whileRunning, unasked, restored, verdict } = await drill(on, kubeconfig, store);
  expect([whileRunning.status, whileRunning.stderr]).toEqual([1, expect.stringMatching(/^WF_RESTORE_RUNNING/)]);
  if (unasked) expect([unasked.status, unasked.stderr]).toEqual([1, expect.stringMatching(/^WF_RESTORE_NEWER/)]);
  expect(restored.stdout).toMatch(/^restored 1 function .*: recorder\n/);
  expect(verdict, describe(verdict)).toMatchObject(noFault);
  expect(verdict.flagged, "nothing was delivered again").toBeGreaterThan(0);
}

test("a backup older than the data folder that it replaces misses nothing, and flags what it repeats", () =>
  drilled("drill-folder", { store: "sqlite" }));

test("a backup in place of a volume that is lost misses nothing, and flags what it repeats", () =>
  drilled("drill-volume", { store: "sqlite", lose: (data) => rm(data, { recursive: true }) }));

test("a backup older than the Secrets that it replaces misses nothing, and flags what it repeats", () =>
  drilled("drill-secrets", { store: "kubernetes" }));

test.skipIf(!natsProgram)(
  "a backup older than the streams on NATS misses nothing, and flags what it repeats",
  async () => {
    const { url: nats } = await startNats();
    await drilled("drill-nats", { store: "nats", nats });
  },
);

test.skipIf(!natsProgram)(
  "a backup of a fleet misses nothing when its replicas start again, and flags what it repeats",
  async () => {
    const { url: nats } = await startNats();
    await drilled("drill-fleet", { store: "nats", fleet: { nats, slots: 8 } });
  },
);
