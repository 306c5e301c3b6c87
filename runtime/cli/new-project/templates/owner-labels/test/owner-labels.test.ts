import { type KubeObject, NotFoundError } from "@watchfire/sdk";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/owner-labels/handler.ts";

const owned = (kind: string, name: string, by?: readonly [kind: string, name: string]): KubeObject => ({
  apiVersion: kind === "Pod" ? "v1" : "apps/v1",
  kind,
  metadata: {
    name,
    namespace: "shop",
    ...(by && { ownerReferences: [{ apiVersion: "apps/v1", kind: by[0], name: by[1], uid: "1", controller: true }] }),
  },
});
const labelsOf = async (object: KubeObject, ...others: KubeObject[]) => {
  const { outcome, objects } = await runHandler(handler, { type: "Added", object }, { objects: [object, ...others] });
  expect(outcome).toBe("ok");
  const { labels } = objects.find(({ kind }) => kind === "Pod")?.metadata ?? {};
  return labels && [labels["owner.watchfire.dev/kind"], labels["owner.watchfire.dev/name"]];
};

test("a Pod is labelled with its Deployment, or with its StatefulSet", async () => {
  const replicas = owned("ReplicaSet", "web-5d4f", ["Deployment", "web"]);
  expect(await labelsOf(owned("Pod", "web-5d4f-1", ["ReplicaSet", "web-5d4f"]), replicas)).toEqual([
    "Deployment",
    "web",
  ]);
  expect(await labelsOf(owned("Pod", "db-0", ["StatefulSet", "db"]))).toEqual(["StatefulSet", "db"]);
});

test("with an owner that is gone or has a long name, the label is still one; a Pod without an owner has none", async () => {
  const long = `${"a".repeat(62)}-web`;
  expect(await labelsOf(owned("Pod", "web", ["ReplicaSet", long]))).toEqual(["ReplicaSet", "a".repeat(62)]);
  expect(await labelsOf(owned("Pod", "alone"))).toBeUndefined();
});

test("a Pod that was deleted meanwhile is no failure", async () => {
  const patch = async () => {
    throw new NotFoundError("gone", { status: 404, reason: "NotFound" });
  };
  const object = owned("Pod", "db-0", ["StatefulSet", "db"]);
  expect((await runHandler(handler, { type: "Added", object }, { kube: { patch } })).outcome).toBe("ok");
});
