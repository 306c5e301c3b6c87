import type { V1ResourceQuota } from "@watchfire/sdk/kubernetes";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import { amountOf } from "../functions/quota-watch/amount.ts";
import handler from "../functions/quota-watch/handler.ts";

const quota = (used: Record<string, string>): V1ResourceQuota => ({
  apiVersion: "v1",
  kind: "ResourceQuota",
  metadata: { name: "default", namespace: "shop" },
  status: { hard: { cpu: "4", memory: "16Gi" }, used },
});
const warningsOf = async (used: Record<string, string>, before?: Record<string, string>) => {
  const event = { object: quota(used), ...(before && { oldObject: quota(before) }) };
  const { outcome, events } = await runHandler(handler, event);
  expect(outcome).toBe("ok");
  return events.map(({ message }) => message);
};

test("it warns of what is nearly used, once until it falls below", async () => {
  const full = { cpu: "3800m", memory: "15Gi" };
  expect(await warningsOf(full)).toEqual(["cpu: 3800m of 4 used, 95 %", "memory: 15Gi of 16Gi used, 93 %"]);
  expect(await warningsOf(full, { cpu: "3700m", memory: "1Gi" })).toEqual(["memory: 15Gi of 16Gi used, 93 %"]);
  expect(await warningsOf({ cpu: "3500m", memory: "0" })).toEqual([]);
  expect(await warningsOf({})).toEqual([]);
});

test("quantities are read as Kubernetes writes them", () => {
  expect(["2", "1500m", "1Ki", "2M", "1e3", "many", undefined].map(amountOf)).toEqual([
    2,
    1.5,
    1024,
    2_000_000,
    1000,
    Number.NaN,
    Number.NaN,
  ]);
});
