import { type LookParts, lookAt } from "../control/explain/live-look.ts";
import type { Look } from "../engine/delivery/delivery.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/** Asks the API server for an object as its trigger's source would bring it, with the rights of the watches. */
export function newestState(manifests: ReadonlyMap<string, FunctionManifest>, parts: LookParts): Look {
  return async (functionName, triggerName, { namespace, name }) => {
    const trigger = manifests.get(functionName)?.triggers.find((each) => each.name === triggerName);
    if (!trigger) throw new Error(`function ${functionName} has no trigger ${triggerName}`);
    const { apiVersion, kind, labelSelector, fieldSelector, object } = trigger;
    const place = namespace === "" ? {} : { namespace };
    const form = object === "Metadata" ? ({ representation: "metadata" } as const) : {};
    const spec = { apiVersion, kind, labelSelector, fieldSelector, ...place, ...form };
    const found = await lookAt({ spec, name }, parts);
    switch (found.type) {
      case "there": {
        const { meta, body } = found.change;
        // One that its selectors leave out by now is none of the function's.
        return found.labels && found.fields ? { ...meta, body } : undefined;
      }
      case "gone":
        return undefined;
      default:
        throw new Error(found.why);
    }
  };
}
