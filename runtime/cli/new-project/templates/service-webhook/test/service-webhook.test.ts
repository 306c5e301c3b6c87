import type { V1Service } from "@watchfire/sdk/kubernetes";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/service-webhook/handler.ts";

const service = (type: string): V1Service => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace: "shop" },
  spec: { type, ports: [{ port: 443 }] },
  status: { loadBalancer: { ingress: [{ ip: "192.0.2.7" }] } },
});
const env = { SERVICE_WEBHOOK_URL: "https://dns.example.com/services" };

/** Runs it with a webhook that answers with this status, and returns what was posted. */
async function post(type: "Modified" | "Deleted", object: V1Service, status = 200) {
  const posted: unknown[] = [];
  const fetch = async (_: string, init?: { body?: unknown }) => {
    posted.push(JSON.parse(String(init?.body)));
    return new Response("", { status });
  };
  return { posted, run: await runHandler(handler, { type, object }, { env, fetch }) };
}

test("a Service is posted with its addresses; without them when it is deleted or no longer load-balanced", async () => {
  const { run, posted } = await post("Modified", service("LoadBalancer"));
  expect(run.outcome).toBe("ok");
  expect(posted).toEqual([{ service: "shop/web", addresses: ["192.0.2.7"], ports: [443] }]);
  const nothing = [{ service: "shop/web", addresses: [], ports: [] }];
  expect((await post("Deleted", service("LoadBalancer"))).posted).toEqual(nothing);
  expect((await post("Modified", service("ClusterIP"))).posted).toEqual(nothing);
});

test("a webhook that is away is tried again, and one that refuses is not", async () => {
  expect((await post("Modified", service("LoadBalancer"), 503)).run).toMatchObject({ retryAfterMs: 30_000 });
  expect((await post("Modified", service("LoadBalancer"), 400)).run.outcome).toBe("permanent");
});

test("without a webhook it is logged", async () => {
  const { logs } = await runHandler(handler, { object: service("LoadBalancer") });
  expect(logs).toMatchObject([{ level: "warn", message: "no webhook", fields: { service: "shop/web" } }]);
});
