import { ForbiddenError, type KubeObject } from "@watchfire/sdk";
import type { V1Secret } from "@watchfire/sdk/kubernetes";
import { runReconciler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/secret-mirror/handler.ts";

const reads = [
  { apiVersion: "v1", kind: "Secret" },
  { apiVersion: "v1", kind: "Namespace", object: "Metadata" },
] as const;
const secret = (namespace: string, labels = {}): V1Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "pull-secret", namespace, uid: `uid-${namespace}`, labels },
  type: "Opaque",
  data: { user: "cm9ib3Q=" },
});
const copy = (namespace: string) => secret(namespace, { "mirror.watchfire.dev/from": "platform" });
const team = (name: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels: { "mirror.watchfire.dev/secret": "pull-secret" } },
});
const object = secret("platform");
const namespacesOf = (objects: readonly KubeObject[]) =>
  objects.filter(({ kind }) => kind === "Secret").map(({ metadata }) => metadata?.namespace);

test("each labelled namespace has a copy, and a copy that nobody wants is deleted", async () => {
  const objects = [object, team("a"), team("b"), copy("b"), copy("c")];
  const run = await runReconciler(handler, { object }, { reads, objects });
  expect(run.outcome).toBe("ok");
  expect(namespacesOf(run.objects).sort()).toEqual(["a", "b", "platform"]);
});

test("the copies go with the Secret, and a Secret that is no copy stays", async () => {
  const key = { namespace: "platform", name: "pull-secret" };
  const { objects } = await runReconciler(handler, { key }, { reads, objects: [team("a"), copy("a"), secret("b")] });
  expect(namespacesOf(objects)).toEqual(["b"]);
  const taken = await runReconciler(handler, { object }, { reads, objects: [object, team("b"), secret("b")] });
  expect(taken).toMatchObject({ outcome: "ok", calls: [], logs: [{ level: "warn" }, { fields: { copies: 0 } }] });
});

test("a namespace that refuses its copy is tried again, and holds up no other", async () => {
  const tried: unknown[] = [];
  const apply = async ({ metadata }: KubeObject) => {
    tried.push(metadata?.namespace);
    throw new ForbiddenError("quota", { status: 403, reason: "Forbidden" });
  };
  const objects = [object, team("a"), team("b")];
  const { outcome } = await runReconciler(handler, { object }, { reads, objects, kube: { apply } as never });
  expect({ outcome, tried }).toEqual({ outcome: "failed", tried: ["a", "b"] });
});
