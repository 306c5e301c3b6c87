import type { SpillHeader } from "../journal/batch.ts";
import type { Checkpoint, StoredView } from "../journal/checkpoint.ts";
import { spillByTurns } from "../journal/spill-by-turns.ts";
import { editsOf, type WaitingWork } from "../manifest/edits.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { recordsOf } from "../manifest/trigger-record.ts";
import { type RecordedTrigger, recordedTriggers } from "./trigger-views.ts";
import { hasLostCauses } from "./work/key-lane.ts";

/**
 * Describes what a manifest changes in a function's checkpoints, one line each, with counts of what waits on disk. Must be called
 * before the manifest's views are opened. Reads the rows that wait, without bodies, only if something changed.
 */
export async function editsOnRecord(store: Checkpoint, manifest: FunctionManifest): Promise<readonly string[]> {
  const after = recordsOf(manifest);
  const { live, retired } = await recordedTriggers(store, manifest.name);
  if (editsOf(after, live, retired).length === 0) return [];
  const headers: SpillHeader[] = [];
  for await (const header of spillByTurns(store, manifest.name)) headers.push(header);
  return editsOf(after, live, retired, ({ view }: RecordedTrigger) => waitingOf(view, headers));
}

function waitingOf({ id, identity }: StoredView, headers: readonly SpillHeader[]): WaitingWork {
  const waiting = { events: 0, keys: 0, woken: 0 };
  for (const header of headers) {
    if (header.kind === "key") {
      const { causes } = header.pending;
      if (header.view === id) waiting.keys++;
      // A key with more causes than are recorded may have been woken by any trigger.
      if (hasLostCauses(causes) || causes.some(({ trigger }) => trigger === identity)) waiting.woken++;
    } else if (header.view === id) waiting.events++;
  }
  return waiting;
}
