import { NotFoundError } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/restart-on-config/handler.ts";

const object: V1ConfigMap = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "shop", resourceVersion: "7" },
  data: { colour: "green" },
};
const deployment = (name: string, on: string) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace: "shop", labels: { "restart.watchfire.dev/on": on } },
  spec: { template: { metadata: {} } },
});

test("a Deployment that names the ConfigMap gets new Pods, and another one does not", async () => {
  const objects = [deployment("web", "settings"), deployment("other", "flags")];
  const run = await runHandler(handler, { object }, { objects });
  expect(run.outcome).toBe("ok");
  const patched = run.calls.filter(({ method }) => method === "patch").map(({ arguments: [ref] }) => ref);
  expect(patched).toEqual([expect.objectContaining({ name: "web" })]);
  expect(run.objects.find(({ metadata }) => metadata?.name === "web")).toMatchObject({
    spec: { template: { metadata: { annotations: { "restart.watchfire.dev/settings": "7" } } } },
  });
});

test("a Deployment that was deleted meanwhile is no failure", async () => {
  const patch = async () => {
    throw new NotFoundError("gone", { status: 404, reason: "NotFound" });
  };
  const run = await runHandler(handler, { object }, { objects: [deployment("web", "settings")], kube: { patch } });
  expect(run.outcome).toBe("ok");
});
