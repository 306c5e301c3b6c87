import type { V1Namespace } from "@watchfire/sdk/kubernetes";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/namespace-defaults/handler.ts";

const object: V1Namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "team-new" } };

test("a new Namespace has its defaults, also where an attempt was interrupted", async () => {
  const first = await runHandler(handler, { type: "Added", object });
  expect(first.outcome).toBe("ok");
  const kinds = first.objects.map(({ kind }) => kind).sort();
  expect(kinds).toEqual(["LimitRange", "Namespace", "NetworkPolicy", "ResourceQuota"]);
  const second = await runHandler(handler, { type: "Added", object }, { objects: first.objects.slice(0, 2) });
  expect(second.outcome).toBe("ok");
  expect(second.objects).toHaveLength(4);
});

test("what a team has set stays", async () => {
  const metadata = { name: "default", namespace: "team-new" };
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard: { pods: "5" } } };
  const { objects } = await runHandler(handler, { type: "Added", object }, { objects: [quota] });
  expect(objects.find(({ kind }) => kind === "ResourceQuota")).toMatchObject({ spec: { hard: { pods: "5" } } });
});

test("a Namespace that is being deleted gets nothing", async () => {
  const going = { ...object, metadata: { ...object.metadata, deletionTimestamp: "2026-11-02T09:30:00Z" } };
  expect(await runHandler(handler, { type: "Added", object: going })).toMatchObject({ outcome: "ok", calls: [] });
});
