// The disasters of runtime/docs/disaster-recovery.md that no backup of the checkpoints is needed for, under load.
import { beforeAll, expect, test, vi } from "vitest";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { type Access, type Body, Client } from "../target/client.ts";
import { startTarget } from "../target/target.ts";
import { folderOf } from "../tools/folder.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";
import { describe } from "./audit.ts";
import { ReplicasFixture } from "./replicas-fixture.ts";

vi.setConfig({ testTimeout: 300_000 });

/** Operations of the writer in each part. */
const operations = 150;

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
const isReady = (replica: Replica) =>
  until(`${replica.name} is ready`, 60_000, async () => (await replica.read("/readyz")).ok);

/** A functions folder with another function alone. */
const others = {
  "other/function.yaml": `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: other }
spec:
  handler: ./handler.ts
  triggers: [{ name: nothing, watch: { apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [default] } } }]
`,
  "other/handler.ts": "export default () => undefined;\n",
};

/** The object as a tool for backups creates it again: with another uid and resourceVersion. */
function again({
  metadata: { uid: _, resourceVersion: __, creationTimestamp: ___, managedFields: ____, ...metadata },
  ...of
}: Body) {
  return { ...of, metadata };
}

test("a namespace that is deleted and restored from an earlier copy of its objects misses nothing, and flags what it repeats", async () => {
  await using on = await ReplicasFixture.set(admin, access, "disaster-namespace");
  const secrets = `/api/v1/namespaces/${on.namespace}/secrets`;
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases`;
  const first = await on.start("kubernetes");
  await on.begins(first);
  await on.load(operations);
  const copies: [string, Body][] = [];
  for (const name of checkpointSecrets("watchfire")) copies.push([secrets, await admin.get(`${secrets}/${name}`)]);
  copies.push([leases, await admin.get(`${leases}/watchfire`)]);
  await on.load(operations);
  first.signal("SIGTERM");
  await first.ended();
  for (const [path, { metadata }] of copies) await admin.reply("DELETE", `${path}/${metadata.name}`);
  on.write(operations);
  for (const [path, copy] of copies) await admin.post(path, again(copy));
  const second = await on.start("kubernetes");
  await isReady(second);
  await on.load(operations);
  const verdict = await on.verdict();
  expect(verdict, describe(verdict)).toMatchObject(noFault);
  expect(verdict.flagged, "nothing was delivered again").toBeGreaterThan(0);
});

test("functions that are lost and put back continue where they were: nothing is missed, and nothing repeated", async () => {
  await using on = await ReplicasFixture.set(admin, access, "disaster-set");
  const pod = "watchfire-0";
  const end = async (replica: Replica) => {
    replica.signal("SIGTERM");
    await replica.ended();
  };
  const first = await on.start("sqlite", { pod });
  await on.begins(first);
  await on.load(operations);
  await on.allHandledBy(first);
  await end(first);
  const without = await on.start("sqlite", { pod, functions: folderOf(others) });
  await isReady(without);
  on.write(operations);
  await on.allWritten();
  await end(without);
  const back = await on.start("sqlite", { pod });
  await isReady(back);
  await on.load(operations);
  const verdict = await on.verdict();
  expect(verdict, describe(verdict)).toMatchObject({ ...noFault, flagged: 0 });
});
