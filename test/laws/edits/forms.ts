import type { Trigger } from "../../../runtime/manifest/function.ts";
import { bodyOf, type Revision } from "./cluster.ts";

/** True if an object consists only of its metadata. */
export const isMetadataForm = (object: Readonly<Record<string, unknown>>): boolean =>
  Object.keys(object).every((name) => name === "apiVersion" || name === "kind" || name === "metadata");

/** The form in which the manifest keeps an object: the less of `object` and `lastBody`. */
const keptForm = ({ object, lastBody, ...trigger }: Trigger): Trigger => ({
  ...trigger,
  lastBody,
  object: object === "Metadata" || lastBody === "Metadata" ? "Metadata" : "Full",
});

/**
 * Returns the fault of the body of a deletion that was found, or undefined. It may show the last known state as the manifest keeps
 * it, the metadata of that state, or the name alone.
 */
export function formFault(body: Buffer, trigger: Trigger, states: readonly Revision[]): string | undefined {
  const shown = JSON.parse(body.toString());
  if (shown.apiVersion !== trigger.apiVersion) return `its apiVersion is ${shown.apiVersion}`;
  if (isMetadataForm(shown)) return undefined;
  return keptFault(body, trigger, states);
}

/** Returns the fault of an old object, or undefined: it is a state of the object, as the manifest keeps it. */
export function oldFault(body: Buffer, trigger: Trigger, states: readonly Revision[]): string | undefined {
  return keptFault(body, trigger, states);
}

function keptFault(body: Buffer, trigger: Trigger, states: readonly Revision[]): string | undefined {
  const shown = JSON.parse(body.toString());
  const form = keptForm(trigger);
  if (shown.apiVersion !== form.apiVersion) return `its apiVersion is ${shown.apiVersion}, not ${form.apiVersion}`;
  const isWhole = !isMetadataForm(shown);
  if (isWhole !== (form.object === "Full")) return isWhole ? "it is whole" : "it is metadata alone";
  const state = states.find(({ rv }) => String(rv) === shown.metadata?.resourceVersion);
  if (!state || JSON.stringify(JSON.parse(bodyOf(state, form).toString())) !== JSON.stringify(shown))
    return "it is no state of its object";
  return undefined;
}
