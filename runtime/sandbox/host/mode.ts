import type { Bundle } from "../../bundle/bundle.ts";
import { WatchfireError } from "../../errors.ts";
import type { Version } from "./placement.ts";

/** What `defineReconciler` leaves in a function's code. */
const reconcilerMark = "@watchfire/sdk/reconciler";

/** What `defineHandler` and `defineBatchHandler` leave. */
const handlerMark = "@watchfire/sdk/handler";

/** @throws WatchfireError WF_SANDBOX_MODE for a reconciler that would be told events, and a handler of events that would be told keys */
export function assertMode({ delivery, file, name }: Version["manifest"], { script }: Pick<Bundle, "script">): void {
  const mode = delivery?.mode ?? "All";
  const isReconciler = script.includes(reconcilerMark);
  // Of a module that has both, nobody can tell which one it exports.
  const isOfEvents = script.includes(handlerMark) && !isReconciler;
  if (mode === "Reconcile" ? !isOfEvents : !isReconciler) return;
  const made = isReconciler ? "defineReconciler" : "defineHandler";
  throw new WatchfireError("WF_SANDBOX_MODE", {
    what: `the handler of ${name} is made by ${made}, and delivery.mode is ${mode}`,
    ...(file !== undefined && { place: { file } }),
    path: "spec.delivery.mode",
    actual: mode,
  });
}
