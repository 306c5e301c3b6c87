import type { Bundle } from "../../bundle/bundle.ts";
import { WatchfireError } from "../../errors.ts";
import type { Version } from "./placement.ts";

/** What `defineReconciler` leaves in a function's code. */
const reconcilerMark = "@watchfire/sdk/reconciler";

/** @throws WatchfireError WF_SANDBOX_MODE for a reconciler that would be told events */
export function assertMode({ delivery }: Version["manifest"], { script }: Pick<Bundle, "script">): void {
  const mode = delivery?.mode ?? "All";
  if (mode === "Reconcile" || !script.includes(reconcilerMark)) return;
  throw new WatchfireError("WF_SANDBOX_MODE", {
    what: `the handler is made by defineReconciler, and delivery.mode is ${mode}`,
    path: "spec.delivery.mode",
    actual: mode,
  });
}
