import type { Fields, KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { field, type ResourceType, type Traits } from "../resource-type.ts";
import { event } from "../traits/core.ts";

/** The names that events.k8s.io/v1 has for fields of core/v1. */
const renamed: Record<string, string> = {
  involvedObject: "regarding",
  message: "note",
  source: "deprecatedSource",
  firstTimestamp: "deprecatedFirstTimestamp",
  lastTimestamp: "deprecatedLastTimestamp",
  count: "deprecatedCount",
  reportingComponent: "reportingController",
};
const back = Object.fromEntries(Object.entries(renamed).map(([core, own]) => [own, core]));

function rename(object: KubeObject, names: Record<string, string>, apiVersion: string): KubeObject {
  const renamedFields: Fields = {};
  for (const [name, value] of Object.entries(object)) renamedFields[names[name] ?? name] = value;
  return { ...(renamedFields as KubeObject), apiVersion };
}

/** Faults of an Event of events.k8s.io. Only this group requires these fields. */
function newEventFaults(object: KubeObject): FieldFault[] {
  const required: [string, string][] = [
    ["eventTime", "eventTime"],
    ["reportingComponent", "reportingController"],
    ["reportingInstance", "reportingInstance"],
    ["action", "action"],
    ["reason", "reason"],
  ];
  const faults = required.filter(([stored]) => !object[stored]).map(([, name]) => fault.required(name));
  if (object.type !== "Normal" && object.type !== "Warning")
    faults.push(fault.invalid("type", object.type ?? "", "has invalid value: "));
  return faults;
}

/** Conversion of Events. Those of both groups are one collection, stored in the form of core/v1. */
export const eventConversion: Pick<ResourceType, "fromStorage" | "toStorage"> & Traits = {
  fromStorage: (object) => rename(object, renamed, "events.k8s.io/v1"),
  toStorage: (object) => rename(object, back, "v1"),
  check: (object, old) => [...(event.check?.(object, old) ?? []), ...(old ? [] : newEventFaults(object))],
  fields: {
    reason: field("reason"),
    type: field("type"),
    ...Object.fromEntries(
      ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map((name) => [
        `regarding.${name}`,
        field(`involvedObject.${name}`),
      ]),
    ),
    reportingController: field("reportingComponent"),
  },
};
