import { runReconciler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/greeting/handler.ts";
import type { V1Greeting } from "../types/greetings.example.com.ts";

const object: V1Greeting = {
  apiVersion: "example.com/v1",
  kind: "Greeting",
  metadata: { name: "morning", namespace: "demo", uid: "1", generation: 3 },
  spec: { message: "good morning" },
};

test("a Greeting has a ConfigMap of its own, and its status says so", async () => {
  const { outcome, objects } = await runReconciler(handler, { object });
  expect(outcome).toBe("ok");
  expect(objects.find(({ kind }) => kind === "ConfigMap")).toMatchObject({
    metadata: { name: "morning", namespace: "demo", ownerReferences: [{ kind: "Greeting", uid: "1" }] },
    data: { message: "good morning" },
  });
  expect(objects.find(({ kind }) => kind === "Greeting")).toMatchObject({
    status: { ready: true, observedGeneration: 3 },
  });
});

test("a Greeting that is gone needs nothing", async () => {
  const run = await runReconciler(handler, { key: { namespace: "demo", name: "morning" } });
  expect(run).toMatchObject({ outcome: "ok", calls: [] });
});
