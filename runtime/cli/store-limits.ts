import { WatchfireError } from "../base/errors.ts";
import { Filter } from "../engine/filter/filter.ts";
import { type StoreKind, storeKinds } from "../journal/checkpoint.ts";
import { faultOfRule } from "../manifest/fault.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import { placeOfWatch } from "../manifest/schedule.ts";
import type { BuildOutcome } from "./built-functions.ts";

/** @throws WatchfireError WF_CLI_USAGE for an unknown store */
export function readStore(store: string): StoreKind {
  const found = storeKinds.find((kind) => kind === store);
  if (found) return found;
  throw new WatchfireError("WF_CLI_USAGE", { what: `--store takes ${storeKinds.join(", ")}`, actual: store });
}

/**
 * Returns warnings about the consequences of checkpoints in Secrets for these functions; empty for other stores. The numbers are
 * measured, and explained in `journal/DESIGN.md`.
 */
export function warningsOfStore(
  { documents }: LoadedFunctions,
  built: readonly BuildOutcome[],
  store: StoreKind | undefined,
): WatchfireError[] {
  if (store !== "kubernetes" || built.length === 0) return [];
  const limits = new WatchfireError("WF_CHECKPOINT_LIMITS", {
    what: "all functions together may know of about 30,000 objects; 64 MiB of bodies are kept, in memory only",
  });
  const readers = built.flatMap(({ manifest, bundle }) => {
    const document = documents.get(manifest.name);
    if (!document) return [];
    const conditions = manifest.triggers.flatMap((trigger, index) =>
      new Filter(trigger).needsOldBody
        ? [
            {
              path: ["spec", "triggers", placeOfWatch(manifest, index)],
              what: "a condition on `oldObject` holds after a handover until the object changes",
            },
          ]
        : [],
    );
    const handler = bundle?.usesOldObject
      ? [{ path: ["spec", "handler"], what: "`oldObject` is absent after a handover until the object changes" }]
      : [];
    return [...conditions, ...handler].map((each) =>
      faultOfRule({ code: "WF_CHECKPOINT_OLD_OBJECT", ...each }, document),
    );
  });
  return [limits, ...readers];
}
