import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/hello/handler.ts";

test("it greets a ConfigMap by its name and keys", async () => {
  const metadata = { name: "a", namespace: "demo" };
  const object: V1ConfigMap = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { k: "v" } };
  const { outcome, logs } = await runHandler(handler, { type: "Added", object });
  expect(outcome).toBe("ok");
  expect(logs).toEqual([{ level: "info", message: "hello", fields: { configMap: "demo/a", keys: ["k"] } }]);
});
