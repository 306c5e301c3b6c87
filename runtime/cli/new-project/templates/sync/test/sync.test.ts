import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/sync/handler.ts";

const source: V1ConfigMap = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "team-a" },
  data: { colour: "blue" },
};
const copy: V1ConfigMap = { ...source, metadata: { name: "settings", namespace: "team-b" } };

test("a ConfigMap is copied into the other namespace", async () => {
  const { outcome, objects } = await runHandler(handler, { type: "Added", object: source });
  expect(outcome).toBe("ok");
  expect(objects).toContainEqual(
    expect.objectContaining({ data: { colour: "blue" }, metadata: expect.objectContaining(copy.metadata) }),
  );
});

test("its copy goes with it; a copy that is gone already is no fault", async () => {
  const { outcome, objects } = await runHandler(handler, { type: "Deleted", object: source }, { objects: [copy] });
  expect({ outcome, objects }).toEqual({ outcome: "ok", objects: [] });
  expect((await runHandler(handler, { type: "Deleted", object: source })).outcome).toBe("ok");
});
