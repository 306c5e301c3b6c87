import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { natsProgram } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { startNats } from "../tools/nats.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";

const root = join(import.meta.dirname, "../..");
const functions = join(root, "test/audit/functions");

test.skipIf(!natsProgram)(
  "while NATS is away no handler begins and /readyz says why; what happened meanwhile is delivered, once, when it is back",
  async () => {
    const folder = folderOf({});
    const server = await startNats();
    const cluster = await ClusterProcess.start(folder);
    onTestFinished(() => cluster.stop());
    const { client } = cluster;
    for (const name of ["audit", "audit-records"])
      await client.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    const seed = join(folderOf({ seed: nkeys.createUser().getSeed() }), "seed");
    // The page's configuration, with the test's address and credentials.
    const page = readFileSync(join(root, "runtime/docs/nats.md"), "utf8");
    const options = /^\$ watchfire start --functions functions (.+)$/m.exec(page)?.[1]?.split(" ") ?? [];
    const named = options.map((each) =>
      each.replace("nats://nats.nats:4222", server.url).replace(/^\/creds\/.*/, seed),
    );
    expect(named).toEqual(["--store", "nats", "--nats", server.url, "--nats-creds", seed]);
    const runtime = new RuntimeProcess(folder, cluster.kubeconfig, functions, [...named, "--namespace", "default"]);
    await runtime.start();
    onTestFinished(() => runtime.kill());
    const make = (name: string) => client.post("/api/v1/namespaces/audit/configmaps", { metadata: { name } });
    const seen = async (): Promise<string[]> => {
      const { items } = await client.get("/api/v1/namespaces/audit-records/configmaps");
      const records = items as { data?: { name?: string; redelivered?: string } }[];
      return records.flatMap(({ data }) => (data?.name ? [`${data.name} ${data.redelivered}`] : [])).sort();
    };
    await make("before");
    await until("it works", 30_000, async () => (await seen()).length === 1);

    await server.kill();
    await make("meanwhile");
    const refusal = await until("/readyz says it", 30_000, async () => {
      const { status, text } = await runtime
        .read("/readyz")
        .then(async (it) => ({ status: it.status, text: await it.text() }));
      return status === 503 && text;
    });
    expect(refusal).toContain("WF_CHECKPOINT_NATS_AWAY");
    expect(await seen()).toEqual(["before false"]);

    await server.start();
    await until("it is ready", 30_000, async () => (await runtime.read("/readyz")).status === 200);
    await until("it is delivered", 30_000, async () => (await seen()).length === 2);
    await make("after");
    await until("it goes on", 30_000, async () => (await seen()).length === 3);
    expect(await seen()).toEqual(["after false", "before false", "meanwhile false"]);
  },
  120_000,
);
