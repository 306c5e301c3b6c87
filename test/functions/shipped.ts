import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ScheduledEvent, UnknownObject, WatchEvent } from "@watchfire/sdk";
import { checkExpression } from "../../runtime/engine/filter/check-expression.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { fixtureOf } from "../../sdk/testing.ts";

/** The functions that the project ships. */
export const functionsFolder = join(import.meta.dirname, "../../functions");

/** Each folder is one function. */
export const folders = readdirSync(functionsFolder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

/** The shipped functions, loaded as by `watchfire validate`. */
export const shipped = await loadFunctions(functionsFolder, { checkExpression });

/** A recorded delivery. `oldObject` is absent if there was no previous object. */
export type RecordedEvent = WatchEvent<UnknownObject> | ScheduledEvent;

/** The events recorded in a function's folder: the event of each file, or the events of its batch. */
export function recordedEvents(folder: string): { file: string; event: RecordedEvent }[] {
  const events = join(functionsFolder, folder, "events");
  return readdirSync(events).flatMap((file) => {
    const { event, events: batch = [event] } = fixtureOf(JSON.parse(readFileSync(join(events, file), "utf8")));
    return batch.flatMap((each) => (each === undefined ? [] : { file, event: each as RecordedEvent }));
  });
}
