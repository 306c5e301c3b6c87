import { defineHandler, getOrUndefined, KubeError, type KubeObject } from "@watchfire/sdk";
import { keepConfigMap } from "./config-map.ts";
import { type MyApp, refOf } from "./myapp.ts";
import { type Finding, writeStatus } from "./status.ts";

/** How to give the custom resource a status, by what it lacks. */
const remedies = {
  unserved:
    "the status cannot be written: the CRD myapps.my.domain has no status subresource; add `subresources: { status: {} }` and a schema for `status` to its version",
  dropped: "the status was dropped: the CRD myapps.my.domain has no schema for `status`; add one to its version",
};

// Whatever fired, the MyApp is read anew and everything is brought to what it says now: running twice does no harm.
export default defineHandler<KubeObject>(async (event, ctx) => {
  const ref = refOf(event.object);
  if (!ref) return;
  const app = await getOrUndefined<MyApp>(ctx.kube, ref).catch((error) => {
    // With the kind gone, its objects are gone. Of a MyApp that has just been seen that is not believed, but tried again.
    if (event.trigger === "configs" && error instanceof KubeError && error.reason === "NotServed") return undefined;
    throw error;
  });
  if (!app || app.metadata?.deletionTimestamp) return;

  const kept = (await keepConfigMap(ctx.kube, app)) === "kept";
  const finding: Finding = kept
    ? { type: "Ready", status: "True", reason: "ConfigMapKept", message: `ConfigMap ${ref.name} is as it should be` }
    : {
        type: "Ready",
        status: "False",
        reason: "NameTaken",
        message: `ConfigMap ${ref.name} belongs to someone else; delete it, or rename this MyApp`,
      };

  const written = await writeStatus(ctx.kube, ref, app.metadata?.generation, finding);
  if (written === "unserved" || written === "dropped") {
    await ctx.events.emit(app, { type: "Warning", reason: "StatusMissing", message: remedies[written] });
  }
  if (!kept) {
    await ctx.events.emit(app, { type: "Warning", reason: finding.reason, message: finding.message });
    throw new Error(finding.message); // tried again, with backoff: the name may become free
  }
  ctx.log.info("reconciled", { generation: app.metadata?.generation, status: written });
});
