import { relative } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import type { ManifestDocument } from "../document/document.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { importedFrom, objectTypes, type TriggerType, triggerTypes } from "../types/handler-text.ts";

/** Module of the built-in kinds' types. */
const kubernetesTypes = "@watchfire/sdk/kubernetes";

/**
 * Returns the types of a handler's triggers that its manifest contradicts: a trigger that it does not have, another kind than the
 * trigger watches, or `Scheduled` for a watch; and the objects' types of `defineHandler<…>` that no trigger watches. Types of other modules than the SDK's are not compared.
 */
export function triggerFaults(
  { triggers, schedules, handler }: Pick<FunctionManifest, "triggers" | "schedules" | "handler">,
  source: string,
  document: Pick<ManifestDocument, "place">,
): WatchfireError[] {
  const kinds = new Map<string, string | undefined>([
    ...triggers.map(({ name, kind }) => [name, kind] as const),
    ...schedules.map(({ name }) => [name, undefined] as const),
  ]);
  const { file, line } = document.place(["spec", "triggers"]);
  const manifest = [relative(process.cwd(), file), line].filter((part) => part !== undefined).join(":");
  const builtIn = importedFrom(source, kubernetesTypes);
  const isScheduled = importedFrom(source, "@watchfire/sdk").has("Scheduled");
  const whatIsWrong = ({ trigger, type }: TriggerType): string | undefined => {
    if (!kinds.has(trigger)) return `the manifest has no trigger ${trigger}`;
    const kind = kinds.get(trigger);
    const typed = builtIn.has(type) ? kindOf(type) : undefined;
    if (kind === undefined)
      return typed && `the trigger ${trigger} is a schedule, whose type is Scheduled, and not ${type}`;
    if (type === "Scheduled" && isScheduled) return `the trigger ${trigger} watches ${kind}, and is not a schedule`;
    return typed === undefined || typed === kind
      ? undefined
      : `the trigger ${trigger} watches ${kind}, and not ${typed}`;
  };
  const ofObjects = objectTypes(source).map(({ type, ...place }) => {
    const typed = builtIn.has(type) ? kindOf(type) : undefined;
    const isWatched = typed === undefined || triggers.some(({ kind }) => kind === typed);
    return { ...place, what: isWatched ? undefined : `no trigger watches ${typed}, which the handler takes` };
  });
  const ofTriggers = triggerTypes(source).map((found) => ({ ...found, what: whatIsWrong(found) }));
  return [...ofObjects, ...ofTriggers].flatMap(({ what, ...found }) => {
    const hint = `${manifest} has ${[...kinds].map(([name, kind]) => `${name} (${kind ?? "a schedule"})`).join(", ")}`;
    const place = { file: relative(process.cwd(), handler), line: found.line, column: found.column };
    return what === undefined ? [] : [new WatchfireError("WF_TYPES_TRIGGER", { what, place, hint })];
  });
}

/** The kind of a built-in type: `V1Pod` is of Pod, `CoreV1Event` of Event. */
const kindOf = (type: string): string | undefined =>
  /^(?:[A-Z][a-z]+)?V\d+(?:(?:alpha|beta)\d+)?([A-Z]\w*)$/.exec(type)?.[1];
