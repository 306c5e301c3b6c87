import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Access } from "../../runtime/access/access.ts";
import { systemClock } from "../../runtime/clock.ts";
import { batchDelivery } from "../../runtime/dispatch/batch/batch-delivery.ts";
import type { Delivery } from "../../runtime/dispatch/delivery/delivery.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { Sandbox } from "../../runtime/sandbox/host/sandbox.ts";
import { ownObjects } from "../access/api-server.ts";
import { Client } from "../target/client.ts";
import { type OwnTarget, startTarget } from "../target/target.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { until } from "../tools/until.ts";
import { manifest } from "./fixture.ts";
import { type RecordedEvent, recordedEvents, shipped } from "./shipped.ts";

// A cluster that serves the kinds but has none of the objects and namespaces that the recorded events speak of.
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
  const access = new Access({
    ...parts,
    transport,
    own: ownObjects,
    discovery: new Discovery(transport, systemClock),
    functions,
  });
  sandbox = new Sandbox({ ...parts, executors: 1, hostCalls: access, output: { log() {}, metric() {} } });
  for (const shippedOne of shipped.functions) await sandbox.load(shippedOne, await bundleFunction(shippedOne), {});
  close = () => Promise.all([sandbox.close(0), access.close(), transport.close()]);
});
afterAll(async () => {
  await close?.();
  await cluster?.close();
});

for (const { name, delivery } of shipped.functions) {
  test.each(recordedEvents(name))(
    `${name} is done with $file in the sandbox, though nothing of it exists`,
    async ({ event }) => {
      const one = deliveryOf(name, event, delivery.timeoutMs);
      const outcome = await sandbox.run(delivery.batch ? batchDelivery([one]) : one);
      expect(outcome).toMatchObject({ type: "ok" });
    },
  );
}

function deliveryOf(name: string, event: RecordedEvent, timeoutMs: number): Delivery {
  const { id, trigger, type, attempt, redelivered } = event;
  const common = { function: name, trigger, id, type, attempt, redelivered, timeoutMs };
  if (event.type === "Scheduled") {
    const object = { apiVersion: "watchfire.dev/v1alpha1", kind: "Schedule", namespace: "", name: trigger, uid: "" };
    const flags = { scheduledFor: event.scheduledFor };
    return { ...common, object, resourceVersion: "1", flags, body: Buffer.from("null") };
  }
  const { apiVersion = "", kind = "", metadata } = event.object;
  const { namespace = "", name: named = "", uid = "" } = metadata ?? {};
  return {
    ...common,
    object: { apiVersion, kind, namespace, name: named, uid },
    resourceVersion: event.resourceVersion,
    flags: event.reason === undefined ? {} : { reason: event.reason },
    body: Buffer.from(JSON.stringify(event.object)),
    ...(event.oldObject ? { oldBody: Buffer.from(JSON.stringify(event.oldObject)) } : {}),
  };
}
