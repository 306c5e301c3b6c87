import { controllerOf, defineHandler, getOrUndefined, type KubeObject, NotFoundError } from "@watchfire/sdk";
import type { Handler } from "./function.d.ts";

/** A Pod's owner of such a kind may have an owner that people know better. */
const between = ["ReplicaSet", "Job"];

export default defineHandler(async (event, ctx) => {
  const { name, namespace } = event.object.metadata;
  let owner = controllerOf(event.object);
  if (!owner) return;
  if (between.includes(owner.kind)) {
    const { apiVersion, kind } = owner;
    const object = await getOrUndefined<KubeObject>(ctx.kube, { apiVersion, kind, name: owner.name, namespace });
    owner = (object && controllerOf(object)) ?? owner;
  }
  const labels = {
    "owner.watchfire.dev/kind": owner.kind,
    // A label's value has 63 characters at most, and ends in a letter or digit.
    "owner.watchfire.dev/name": owner.name.slice(0, 63).replace(/[^a-z0-9]+$/, ""),
  };
  await ctx.kube.patch({ apiVersion: "v1", kind: "Pod", name, namespace }, { metadata: { labels } }).catch((error) => {
    if (!(error instanceof NotFoundError)) throw error; // it was deleted meanwhile
  });
}) satisfies Handler;
