import type { Fields, KubeObject } from "../api/object.ts";
import { field, type ResourceType, type Traits } from "./resource-type.ts";
import { event } from "./traits/core.ts";

/** events.k8s.io/v1 names for the fields that core/v1 calls otherwise. */
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

/** Events of both groups are one collection, stored in the form of core/v1. */
export const eventConversion: Pick<ResourceType, "fromStorage" | "toStorage"> & Traits = {
  fromStorage: (object) => rename(object, renamed, "events.k8s.io/v1"),
  toStorage: (object) => rename(object, back, "v1"),
  fields: {
    ...event.fields,
    ...Object.fromEntries(
      ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map((name) => [
        `regarding.${name}`,
        field(`involvedObject.${name}`),
      ]),
    ),
    reportingController: field("reportingComponent"),
  },
};
