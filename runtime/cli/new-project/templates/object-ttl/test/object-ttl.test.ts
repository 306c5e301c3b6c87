import { runReconciler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/object-ttl/handler.ts";

const hour = 3_600_000;
const configMap = (ttl: string, hoursOld: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name: "branch-7",
    namespace: "preview",
    uid: "1",
    creationTimestamp: new Date(Date.now() - hoursOld * hour).toISOString(),
    annotations: { "ttl.watchfire.dev/after": ttl },
  },
});

test("an object whose time is over is deleted", async () => {
  const run = await runReconciler(handler, { object: configMap("24h", 25) });
  expect(run).toMatchObject({ outcome: "ok", objects: [] });
});

test("a younger one is looked at again when its time is over, within a day", async () => {
  const soon = await runReconciler(handler, { object: configMap("24h", 22) });
  expect(soon).toMatchObject({ outcome: "ok", calls: [], requeueAfterMs: 2 * hour });
  const late = await runReconciler(handler, { object: configMap("240h", 0) });
  expect(late).toMatchObject({ calls: [], requeueAfterMs: 24 * hour });
});

test("a time that cannot be read is said on the object, and one that is gone needs nothing", async () => {
  const run = await runReconciler(handler, { object: configMap("tomorrow", 25) });
  expect(run).toMatchObject({ outcome: "ok", calls: [], events: [{ type: "Warning", reason: "BadTTL" }] });
  const gone = await runReconciler(handler, { key: { namespace: "preview", name: "branch-7" } });
  expect(gone).toMatchObject({ outcome: "ok", calls: [] });
});
