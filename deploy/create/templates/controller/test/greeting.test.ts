import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import type { Greeting } from "../functions/greeting/greeting.ts";
import handler from "../functions/greeting/handler.ts";

const object: Greeting = {
  apiVersion: "example.com/v1",
  kind: "Greeting",
  metadata: { name: "morning", namespace: "demo", uid: "1", generation: 3 },
  spec: { message: "good morning" },
};

test("a Greeting has a ConfigMap of its own, and its status says so", async () => {
  const { outcome, objects } = await runHandler(handler, { type: "Added", object });
  expect(outcome).toBe("ok");
  expect(objects.find(({ kind }) => kind === "ConfigMap")).toMatchObject({
    metadata: { name: "morning", namespace: "demo", ownerReferences: [{ kind: "Greeting", uid: "1" }] },
    data: { message: "good morning" },
  });
  expect(objects.find(({ kind }) => kind === "Greeting")).toMatchObject({
    status: { ready: true, observedGeneration: 3 },
  });
});
