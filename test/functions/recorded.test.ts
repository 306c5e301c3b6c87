import { basename } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Access } from "../../runtime/access/access.ts";
import { systemClock } from "../../runtime/base/clock.ts";
import { fixtureDelivery } from "../../runtime/dev/fixtures/fixture-delivery.ts";
import { fixtureFiles, readFixture } from "../../runtime/dev/fixtures/fixture-file.ts";
import { FixtureReads } from "../../runtime/dev/fixtures/fixture-reads.ts";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { Sandbox } from "../../runtime/sandbox/host/sandbox.ts";
import { ownObjects } from "../access/api-server.ts";
import { Client } from "../target/client.ts";
import { type OwnTarget, startTarget } from "../target/target.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { until } from "../tools/until.ts";
import { manifest } from "./fixture.ts";
import { shipped } from "./shipped.ts";

// A cluster that serves the kinds, but does not contain the objects and namespaces of the recorded events.
let cluster: OwnTarget;
let sandbox: Sandbox;
let close: () => Promise<unknown>;

beforeAll(async () => {
  cluster = await startTarget("embedded");
  const client = new Client(cluster.access);
  for (const crd of manifest("myapp/crd.yaml")) {
    await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
    await until(
      "MyApp is served",
      10_000,
      async () => (await client.reply("GET", "/apis/my.domain/v1/myapps")).status === 200,
    );
  }
  await client.close();
  const transport = connectDirect({ ...cluster.access, server: cluster.access.url });
  const parts = { clock: systemClock, random: Math.random, log: pino({ level: "silent" }) };
  const functions = new Map(shipped.functions.map((manifest) => [manifest.name, manifest]));
  const discovery = new Discovery(transport, systemClock);
  const reading = shipped.functions.find(({ reads }) => reads.length > 0);
  if (!reading) throw new Error("no shipped function has reads");
  const kept = await FixtureReads.open(reading, { transport, discovery, file: reading.file });
  const access = new Access({ ...parts, transport, own: ownObjects, discovery, functions, reads: kept.reads });
  sandbox = new Sandbox({ ...parts, executors: 1, hostCalls: access, output: { log() {}, metric() {} } });
  for (const shippedOne of shipped.functions) await sandbox.load(shippedOne, await bundleFunction(shippedOne), {});
  close = async () => {
    await Promise.all([sandbox.close(0), access.close(), kept.close()]);
    await transport.close();
  };
});
afterAll(async () => {
  await close?.();
  await cluster?.close();
});

for (const manifest of shipped.functions) {
  test.each(fixtureFiles(manifest).map((file) => ({ ...readFixture(file), name: basename(file) })))(
    `${manifest.name} is done with $name in the sandbox, though nothing of it exists`,
    async (fixture) => {
      const { delivered: told, of } = fixtureDelivery(manifest, fixture);
      const outcome = await run(sandbox, of(told.map(({ object }) => object)));
      expect(outcome).toMatchObject({ type: "ok" });
    },
  );
}
