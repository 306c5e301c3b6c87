import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import type { Trigger } from "../../../runtime/manifest/function.ts";
import { change, DispatchFixture, type DispatchOptions, manifest, quiet, trigger } from "../fixture.ts";

export const pods = (key: Trigger["key"]): Trigger => trigger({ name: "pods", kind: "Pod", ...(key && { key }) });
export const byOwner = pods({ type: "owner", apiVersion: "v1", kind: "ConfigMap" });
export const byLabel = pods({ type: "expression", expression: "object.spec.of" });

export const reconciler = (over: Parameters<typeof manifest>[0] = {}, child = byOwner) =>
  manifest({ mode: "Reconcile", ...over }, [trigger(), child]);

/** A reconciler of ConfigMaps and their Pods, both of which are listed. */
export async function open(
  options: DispatchOptions = {},
): Promise<DispatchFixture & { pods: DispatchFixture["subscription"] }> {
  const fixture = await DispatchFixture.open({ manifest: reconciler(), ...options });
  return withPods(fixture);
}

/** Opens the subscription to Pods, by default with a complete list. */
export async function withPods(fixture: DispatchFixture, list = true) {
  const children = fixture.function.subscription("pods", { selection: "all", namespace: "" });
  if (list) {
    await fixture.listed();
    children.list("initial", undefined).end(resourceVersion("1"));
    await quiet(fixture.runner);
    await fixture.clock.advance(200);
  }
  return Object.assign(fixture, { pods: children });
}

/** A Pod that is owned by these ConfigMaps. */
export function owned(type: "Added" | "Modified" | "Deleted", name: string, rv: number, ...owners: string[]) {
  const made = change(type, name, rv);
  const object = JSON.parse(made.body.toString());
  object.metadata.ownerReferences = owners.map((owner) => ({ apiVersion: "v1", kind: "ConfigMap", name: owner }));
  return { ...made, body: Buffer.from(JSON.stringify(object)) };
}

/** Runs in short: the key, the object's resourceVersion, and the causes. */
export const runs = ({ runner }: DispatchFixture) =>
  runner.deliveries.map(({ object, body, causes = [], attempt, redelivered }) => {
    const state = body.length === 0 ? "gone" : JSON.parse(body.toString()).metadata.resourceVersion;
    const why = causes.map(({ type, trigger: of, name }) => [type, of, name].filter(Boolean).join(" "));
    return `${object.name}@${state} <- ${why.join(", ")}${attempt > 1 ? ` #${attempt}` : ""}${redelivered ? " !" : ""}`;
  });
